/** Cost of a queued call, for short and long queues. */
import PQueue from 'p-queue'
import type { Guard } from 'spillway'
import { AN_HOUR_MS, callOptions, openGuard, SLOTS } from '../all-stages.js'
import type { Comparison, Figure, Preparation, Round } from '../measure.js'
import { peerName } from '../peer-name.js'
import { BareLine } from './bare-line.js'
import { work } from './contenders.js'

const MANY = 10_000
const FEW = 100

/** A very long queue without a timeout. */
function openRoom(preparation: Preparation): Guard {
  return openGuard(preparation, {
    options: {
      shed: { maxQueue: 2 * MANY },
      queue: { size: 2 * MANY, timeoutMs: AN_HOUR_MS },
    },
  })
}

/** Starts `waiting` calls at once. Each slot is freed as soon as its call has started. */
function drain(waiting: number, run: () => Promise<number>, length: () => number): Round {
  return async () => {
    const startMs = performance.now()
    const answers: Promise<number>[] = []
    for (let i = 0; i < waiting + SLOTS; i++) answers.push(run())
    if (length() !== waiting) throw new Error(`${length()} calls wait instead of ${waiting}`)
    let done = 0
    for (const answer of await Promise.all(answers)) done += answer
    return (done * 1_000) / (performance.now() - startMs)
  }
}

export const queueVsPQueue: Comparison = {
  name: 'queue-vs-p-queue',
  what: `${MANY.toLocaleString('en-US')} waiting calls, ${SLOTS} at once; with Spillway through nine stages`,
  target: 1,
  peerName: peerName('p-queue'),
  unit: 'calls/s',
  prepare(preparation) {
    const our = openRoom(preparation)
    const their = new PQueue({ concurrency: SLOTS })
    return {
      ours: drain(
        MANY,
        () => our.run(work, callOptions()),
        () => our.snapshot().queue.waiting,
      ),
      peer: drain(
        MANY,
        () => their.add(work),
        () => their.size,
      ),
    }
  },
}

const CALLS_A_ROUND = 50_000

/** As many callers as slots and queue positions together. Each calls again after its answer. */
function standing(waiting: number, run: () => Promise<number>): Round {
  return async () => {
    const startMs = performance.now()
    let [begun, done] = [0, 0]
    const caller = async () => {
      while (begun < CALLS_A_ROUND) {
        begun++
        const answer = await run()
        done += answer
      }
    }
    await Promise.all(Array.from({ length: waiting + SLOTS }, caller))
    if (done !== begun) throw new Error(`${begun - done} of ${begun} calls did not run`)
    return ((performance.now() - startMs) * 1e6) / done
  }
}

export const growthQueue: Comparison = {
  name: 'growth-queue',
  what: `a call through a queue with ${MANY.toLocaleString('en-US')} waiting, and with ${FEW}`,
  target: 0.8,
  peerName: `spillway with ${FEW} waiting`,
  unit: 'ns/op',
  prepare(preparation) {
    const open = () => {
      const guard = openRoom(preparation)
      return () => guard.run(work, callOptions())
    }
    return { ours: standing(MANY, open()), peer: standing(FEW, open()) }
  },
}

/** `others` calls of a lower priority stay in the queue while high-priority callers overtake them. */
function pass(others: number, guard: Guard): Round {
  const passing = standing(SLOTS, () => guard.run(work, { ...callOptions(), priority: 'high' }))
  return async () => {
    let begin = () => {}
    const begun = new Promise<number>((resolve) => {
      begin = () => resolve(1)
    })
    const answers: Promise<number>[] = []
    for (let i = 0; i < SLOTS; i++) answers.push(guard.run(() => begun, callOptions()))
    for (let i = 0; i < others; i++) {
      answers.push(guard.run(work, { ...callOptions(), priority: 'low' }))
    }
    const { waiting } = guard.snapshot().queue
    if (waiting !== others) throw new Error(`${waiting} calls wait instead of ${others}`)
    const result = passing()
    begin()
    const ns = await result
    await Promise.all(answers)
    return ns
  }
}

export const growthQueueOthers: Comparison = {
  name: 'growth-queue-others',
  what: `a queued call that overtakes ${MANY.toLocaleString('en-US')} others, and ${FEW}`,
  target: 0.8,
  peerName: `spillway with ${FEW} others`,
  unit: 'ns/op',
  prepare(preparation) {
    return {
      ours: pass(MANY, openRoom(preparation)),
      peer: pass(FEW, openRoom(preparation)),
    }
  },
}

export const growthBareLine: Figure = {
  name: 'growth-bare-line',
  what: 'the same ratio for a plain list of promises: a bound for growth-queue',
  unit: '',
  prepare() {
    const open = () => {
      const line = new BareLine()
      return () => line.run(work)
    }
    const [many, few] = [standing(MANY, open()), standing(FEW, open())]
    return async () => (await few()) / (await many())
  },
}
