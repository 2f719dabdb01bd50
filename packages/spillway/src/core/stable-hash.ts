/**
 * Where between 0 and 1 somebody stands. The same for the same name on every pod, so that who is
 * refused is refused everywhere, and who is inside gets all of a service and not half of each answer.
 * (FNV-1a, then mixed: neighbours in name are none in number.)
 */
export function placeOf(name: string, salt: number): number {
  let hash = 0x811c9dc5 ^ salt
  for (let index = 0; index < name.length; index++) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
