// What a browser recorded, in a format that every server reads: WAV, 16 bits, one channel.
const RATE = 16000; // samples a second
const HEADER = 44; // bytes

export async function wav(blob, name) {
  const sound = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await blob.arrayBuffer()); // at that rate
  const channels = Array.from({ length: sound.numberOfChannels }, (_, i) => sound.getChannelData(i));
  const bytes = new DataView(new ArrayBuffer(HEADER + 2 * sound.length));
  const letters = (at, text) => [...text].forEach((letter, i) => bytes.setUint8(at + i, letter.charCodeAt(0)));
  letters(0, "RIFF");
  bytes.setUint32(4, HEADER - 8 + 2 * sound.length, true);
  letters(8, "WAVEfmt ");
  bytes.setUint32(16, 16, true); // bytes of the format: PCM, channels, rate, bytes a second, a sample, bits
  [1, 1].forEach((value, i) => bytes.setUint16(20 + 2 * i, value, true));
  [RATE, 2 * RATE].forEach((value, i) => bytes.setUint32(24 + 4 * i, value, true));
  [2, 16].forEach((value, i) => bytes.setUint16(32 + 2 * i, value, true));
  letters(36, "data");
  bytes.setUint32(40, 2 * sound.length, true);
  for (let i = 0; i < sound.length; i++) {
    const mean = channels.reduce((sum, channel) => sum + channel[i], 0) / channels.length;
    bytes.setInt16(HEADER + 2 * i, Math.round(32767 * Math.max(-1, Math.min(1, mean))), true);
  }
  return new File([bytes], name, { type: "audio/wav" });
}
