/**
 * What is written in one turn of the event loop leaves at its end, all at once. Whoever is written to wakes
 * up once for many requests, and not for each of them, which under load is a good part of what a write costs.
 * Without load a turn has nothing else in it, and nothing waits.
 */
import type { Writable } from 'node:stream'
import type { ClientResponse } from './client.js'

/** Something that writes when it is told to: for less than it costs to have a stream hold it back. */
export interface Leaving {
  leave(): void
}

/** So few already make a wake-up cheap for each, and hold each other up only a little. */
const MOST_LEAVING = 4

let corked: Writable[] = []
let leaving: Leaving[] = []
let ends: { response: ClientResponse; text: string }[] = []

/** Holds back what is written to it from now on. */
export function holdUntilEndOfTurn(stream: Writable): void {
  expectEnd()
  stream.cork()
  corked.push(stream)
}

/** At its end, or as soon as a few want to: the first of many does not wait until the last has been read. */
export function leaveByEndOfTurn(one: Leaving): void {
  expectEnd()
  if (leaving.push(one) === MOST_LEAVING) letLeave()
}

/** Ends it with the whole of its body, in latin1. Node lets go of a socket with the end of a response. */
export function endAtEndOfTurn(response: ClientResponse, text: string): void {
  expectEnd()
  ends.push({ response, text })
}

function expectEnd(): void {
  if (corked.length === 0 && leaving.length === 0 && ends.length === 0) setImmediate(letGo)
}

function letGo(): void {
  const streams = corked
  const responses = ends
  corked = []
  ends = []
  for (const stream of streams) stream.uncork()
  letLeave()
  for (const { response, text } of responses) {
    if (!response.destroyed) response.end(text, 'latin1')
  }
}

function letLeave(): void {
  const ready = leaving
  leaving = []
  for (const one of ready) one.leave()
}
