/**
 * Maps a name to a number from 0 to 1, the same on every pod. So a caller that is left out of a
 * feature is left out everywhere and does not see half of it. FNV-1a, then mixed, so that similar
 * names get unrelated numbers.
 */
export function stableHash(name: string, salt: number): number {
  let hash = 0x811c9dc5 ^ salt
  for (let index = 0; index < name.length; index++) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
