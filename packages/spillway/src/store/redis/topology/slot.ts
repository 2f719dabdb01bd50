/**
 * The slot of a key, of the 16384 of a cluster: CRC16 (XMODEM) of its hash tag, or of the whole
 * key.
 */

export const SLOTS = 16_384
const POLYNOMIAL = 0x1021

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1
  return crc
})

export function slotOf(key: string): number {
  const part = hashedPart(key)
  let crc = 0
  for (let index = 0; index < part.length; index++) {
    const code = part.charCodeAt(index)
    // The server hashes UTF-8; nearly all keys are ASCII.
    if (code > 127) return crcOf(Buffer.from(part)) % SLOTS
    crc = next(crc, code)
  }
  return crc % SLOTS
}

function crcOf(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) crc = next(crc, byte)
  return crc
}

function next(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ TABLE[(crc >> 8) ^ byte]!
}

/** The part between the first `{` and the next `}`, unless it is empty. */
function hashedPart(key: string): string {
  const open = key.indexOf('{')
  if (open === -1) return key
  const close = key.indexOf('}', open + 1)
  return close <= open + 1 ? key : key.slice(open + 1, close)
}
