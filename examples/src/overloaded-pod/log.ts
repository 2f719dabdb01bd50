/** The live view without a terminal: one plain line per second. */
import type { Clock } from 'spillway/testing'
import type { Stage } from './act.js'
import type { Heading } from './frame.js'
import { count, perSecond } from './numbers.js'
import { ACT_MS, phaseAt } from './scenario.js'
import type { Terminal } from './terminal.js'
import { goodputIn, offeredIn } from './visits.js'

const SECOND_MS = 1_000

/** Logs the act until the function returned is called. */
export function logAct(
  { title, means }: Heading,
  stage: Stage,
  clock: Clock,
  terminal: Terminal,
): () => void {
  terminal.write(`${title} (${means})\n`)
  let endMs = SECOND_MS

  function log(): void {
    terminal.write(`${secondLine(stage, endMs)}\n`)
    endMs += SECOND_MS
    if (endMs <= ACT_MS) arm()
  }

  function arm() {
    timer = clock.schedule(endMs - stage.elapsedMs(), log)
  }

  let timer = clock.schedule(endMs, log)
  return () => {
    timer.cancel()
    terminal.write('\n')
  }
}

function secondLine({ visits, vendor, pod }: Stage, endMs: number): string {
  const span = { startMs: endMs - SECOND_MS, endMs }
  return [
    `${endMs / SECOND_MS} s`.padStart(5),
    phaseAt(span.startMs)?.name.padEnd(10),
    `offered ${perSecond(offeredIn(visits, span)).padStart(5)}`,
    `goodput ${perSecond(goodputIn(visits, span)).padStart(5)}`,
    `in flight ${count(vendor.inFlight).padStart(5)}`,
    `in line ${count(pod.waiting).padStart(2)}`,
  ].join('  ')
}
