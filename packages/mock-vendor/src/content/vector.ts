/** Embeddings: a text always gets the same vector, of length 1. */
import { createRandom } from 'spillway/internal'

export function vectorOf(text: string, length: number): Float32Array {
  let seed = 0
  for (let index = 0; index < text.length; index++) {
    seed = (Math.imul(seed, 31) + text.charCodeAt(index)) | 0
  }
  const random = createRandom(seed)
  const vector = Float32Array.from({ length }, () => random() - 0.5)
  const norm = Math.hypot(...vector)
  return vector.map((value) => value / norm)
}
