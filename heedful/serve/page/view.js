// Runs the script of the view. Until it listens and has what it shows, nothing in the view takes a click or a letter.
import { byId, trouble } from "./common.js";

try {
  await import(`./${document.body.dataset.page}.js`);
} catch (error) {
  trouble(error);
}
byId("content").inert = false;
