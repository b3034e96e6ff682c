/** The page's data: JSON, compressed with gzip, in base64. */

/** @param {string} packed @returns {Promise<any>} */
export async function unpack(packed) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser cannot unpack the figures (no DecompressionStream); a newer one can");
  }
  const bytes = Uint8Array.from(atob(packed.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
