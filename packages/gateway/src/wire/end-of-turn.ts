/**
 * What is written in one turn of the event loop leaves at its end, all at once. Whoever is written to wakes
 * up once for many requests, and not for each of them, which under load is a good part of what a write costs.
 * Without load a turn has nothing else in it, and nothing waits.
 */
import type { Writable } from 'node:stream'

let corked: Writable[] = []

/** Holds back what is written to it from now on. */
export function holdUntilEndOfTurn(stream: Writable): void {
  stream.cork()
  if (corked.push(stream) === 1) setImmediate(letGo)
}

function letGo(): void {
  const streams = corked
  corked = []
  for (const stream of streams) stream.uncork()
}
