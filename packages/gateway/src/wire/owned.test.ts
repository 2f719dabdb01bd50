/** Strings that outlive a request must not retain the whole request head they were cut from. */
import { Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { Callers } from '../data/callers.js'
import { latin1 } from './latin1.js'
import { readPlainHead } from './plain-head.js'

const HEAD_BYTES = 16_000
/** The name cache drops 500 names at a time, so most of these are still in it. */
const HEADS = 1_950

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapAfterCollecting(): number {
  collect()
  return process.memoryUsage().heapUsed
}

it('remembered users and header names do not retain the request head they came from', () => {
  const callers = new Callers(undefined)
  const socket = new Socket()
  const remembered = new Map<string, number>()
  const before = heapAfterCollecting()
  for (let i = 0; i < HEADS; i++) {
    const lines = `Host: a\r\nspillway-user: customer-number-${i}\r\nX-Some-Long-Name-${i}: x\r\n`
    const text = `GET / HTTP/1.1\r\n${lines}X-Padding: ${'x'.repeat(HEAD_BYTES)}`
    const head = readPlainHead(latin1(Buffer.from(text)))
    const caller = head && callers.find(undefined, { headers: head.headers, socket })
    remembered.set(caller?.user ?? '', i)
  }
  const kept = heapAfterCollecting() - before
  expect(remembered.size).toBe(HEADS)
  expect(kept).toBeLessThan((HEADS * HEAD_BYTES) / 10)
})
