"""Models over HTTP: `heed serve`."""

import errno
import json
import logging
import signal
import socket
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import HeedError, InputError, MissingError
from heedful.store import files
from heedful.tasks.shared.options import Device, Json, Weights
from heedful.tasks.shared.terminal import printable, say

if TYPE_CHECKING:
    from fastapi import FastAPI

    from heedful.serve.engine import Engine
    from heedful.serve.gate import Rules
    from heedful.serve.server import Server

RUNS = Path("runs")  # what is served where no run is named


def serve(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Folders of trained models; without any, every run of runs/.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; any other than localhost needs an API key.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8765,
    api_key: Annotated[
        str | None, typer.Option(envvar="HEED_API_KEY", help="What every request must bring; better in HEED_API_KEY.")
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="HOST", help="A name that a proxy is asked by; may be given again."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="own, ctranslate2, llama.cpp (language models, faster for one client), or auto: translators on a CPU "
            "by CTranslate2, which is faster, where it has the model. It may find another translation of about the "
            "same score."
        ),
    ] = "auto",
    device: Device = "auto",
    weights: Weights = "float32",
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="List which routes would be reachable by whom, and exit.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Serve models to programs and browsers, on this machine.

    Example: heed serve runs/demo
    """
    from heedful.run.device import chosen_device
    from heedful.serve.app import make_app, rules_for
    from heedful.serve.server import make_server

    rules = rules_for(host, checked_key(api_key), names or ())
    chosen = chosen_device(device, weights=weights, engine=engine)
    folders = named(runs) if runs else found_in(RUNS)
    with nullcontext() if check else listen(host, port) as listening:
        models = opened(folders, engine=engine, device=chosen, weights=weights, every=bool(runs))
        beside = next(iter(folders.values())).resolve().parent  # the other runs there can be looked at
        app = make_app(models, rules=rules, runs=beside)
        url = url_of(host, port if listening is None else listening.getsockname()[1])
        facts = [{"name": model.name, "task": model.row.name, "engine": model.engine} for model in models.values()]
        if listening is None:
            tell_openness(url, app, facts, rules, as_json=as_json)
            return

        def ready() -> None:
            if as_json:
                print(json.dumps({"url": url, "models": facts}), flush=True)
            for model in models.values():
                why = f" (and not ctranslate2: {model.why})" if model.why else ""
                say(f"{model.name}: {model.row.name}, engine {model.engine}{why}")
            say(f"{url} answers; Ctrl-C ends it")
            if open_page:
                import webbrowser

                webbrowser.open(url)

        run_until_ended(make_server(app, ready=ready), listening)


def run_until_ended(server: "Server", listening: socket.socket) -> None:
    """Serves until Ctrl-C, SIGTERM or SIGHUP (unless that is ignored), and then finishes the running requests. Raises
    InputError if another process is listening at the address by now: several can bind it before one listens."""
    try:
        listening.listen()
    except OSError as error:
        host, port, *_ = listening.getsockname()
        raise _no_address(host, port, error) from None
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGTERM, lambda *_: None)  # the server has its own handler while it runs
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, server.handle_exit)
    server.run(sockets=[listening])


def checked_key(key: str | None) -> str | None:
    """The key. Raises InputError for one that does not fit into a header."""
    if key is None or (key.isascii() and key.isprintable() and key.strip() == key and key):
        return key
    raise InputError(
        "an empty key, or one with blanks around it or other than ASCII",
        where="--api-key",
        fix="take letters and digits",
    )


def named(runs: Sequence[Path]) -> dict[str, Path]:
    """The runs by the names of their folders. Raises InputError for two different runs of one name, MissingError for a
    folder that is not there."""
    found: dict[str, Path] = {}
    for run in runs:
        files.need_folder(run)
        name = run.resolve().name
        if name not in found:
            found[name] = run
        elif found[name].resolve() == run.resolve():
            say(f"note: {run} is served already, as {name}")
        else:
            what = f"two runs are called {name!r}: {found[name]} and {run}"
            raise InputError(what, fix="rename one of the folders, or serve one of them")
    return found


def found_in(folder: Path) -> dict[str, Path]:
    """The runs in a folder that have a model. Raises MissingError if there are none."""
    runs = sorted(path.parent for path in folder.glob("*/task.json")) if folder.is_dir() else []
    if not runs:
        raise MissingError("no run to serve", where=f"{folder}/", fix="name one, or make one: heed demo")
    return named(runs)


def opened(folders: dict[str, Path], *, engine: str, device: str, weights: str, every: bool) -> "dict[str, Engine]":
    """Opens the models. One that cannot be read is left out with a warning, or raises its error if `every` model or an
    engine is asked for."""
    from heedful.serve.opening import open_engine

    models: dict[str, Engine] = {}
    for name, run in folders.items():
        try:
            models[name] = open_engine(run, name=name, engine=engine, device=device, weights=weights)
        except HeedError as error:
            if every or engine not in ("auto", "own"):
                raise
            say(f"warning: {name} is not served: {error}")
    if not models:
        raise MissingError("no run could be read", where=f"{RUNS}/", fix="see the warnings")
    return models


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound to the address. Raises InputError if that is not possible."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)  # with the protocol: only then asyncio sends small answers at once
    except (OSError, UnicodeError) as error:
        raise _no_address(host, port, error) from None
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
    except OSError as error:
        made.close()
        raise _no_address(host, port, error) from None
    return made


def _no_address(host: str, port: int, error: Exception) -> InputError:
    why = error.strerror if isinstance(error, OSError) else str(error)
    of_port = isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES)
    fix = "--port 0 takes a free port" if of_port else "--host 127.0.0.1 is this machine, 0.0.0.0 each of its addresses"
    return InputError(f"cannot listen at {host}:{port} ({why})", fix=fix)


def url_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def tell_openness(url: str, app: "FastAPI", models: Sequence[dict[str, str]], rules: "Rules", *, as_json: bool) -> None:
    """Prints which routes would be open to whom."""
    from heedful.serve.app import open_routes

    routes = [f"{method} {path}" for method, path in open_routes(app)]
    hosts, key = sorted(rules.hosts), rules.key is not None
    reached = "other machines" if rules.addresses else "this machine"
    if as_json:
        facts = {"url": url, "reached_by": reached, "hosts": hosts, "key": key, "models": models, "routes": routes}
        print(json.dumps(facts))
        return
    print(f"address  {url}, which is reached by {reached}")
    print(f"names    {', '.join(hosts)}{', and any address' if rules.addresses else ''}")
    print(f"key      {'needed for all but GET /health' if key else 'none: whoever reaches the address may ask'}")
    print(f"models   {', '.join(printable(each['name']) for each in models)}")
    print("\n".join(f"{'routes' if number == 0 else '':8} {route}" for number, route in enumerate(routes)))
