/**
 * One pod calls one vendor, with four times the load that the vendor can serve: first without protection, then with it.
 * `npm run demo` shows it live, `npm run demo -- --fast` only the result. The two pods are in
 * overloaded-pod/naive-pod.ts and overloaded-pod/protected-pod.ts.
 */
import { createVirtualClock, systemClock } from 'spillway/testing'
import { ACTS, type Act, play, type Stage } from './overloaded-pod/act.js'
import { HELP, readArguments } from './overloaded-pod/arguments.js'
import { logAct } from './overloaded-pod/log.js'
import { drawAct } from './overloaded-pod/screen.js'
import type { Summary } from './overloaded-pod/summary.js'
import { table } from './overloaded-pod/table.js'
import { createTerminal } from './overloaded-pod/terminal.js'

const INTRODUCTION =
  'One pod, one vendor, four times as many clients as the vendor can serve: first without ' +
  'protection, then with Spillway.'
const LIVE = 'Takes about 23 seconds; Ctrl-C ends it.'
const FAST = 'On a virtual clock, so it takes no time.'
const LEGEND = '█ answered in time   ░ came, but was not   ▁ what the vendor can do'

const NEXT = [
  'What to try next:',
  '  npm test                  every claim the library makes',
  '  npm run bench -- local    what the protection costs',
  '  docs/README.md            how to use it',
]

const terminal = createTerminal(process.stdout, process.env)

function playLive(act: Act, seed: number): Promise<Summary> {
  const title = `Act ${ACTS.indexOf(act) + 1} of ${ACTS.length}: ${act.title}`
  const follow = terminal.drawable ? drawAct : logAct
  const watch = (stage: Stage) => follow({ ...act, title }, stage, systemClock, terminal)
  return play(act, { clock: systemClock, seed, watch })
}

function playFast(act: Act, seed: number): Promise<Summary> {
  const clock = createVirtualClock({ quick: true })
  return clock.until(play(act, { clock, seed }))
}

async function run({ fast, seed }: { fast: boolean; seed: number }): Promise<void> {
  terminal.say(`${INTRODUCTION} ${fast ? FAST : LIVE}`)
  if (terminal.drawable && !fast) {
    terminal.print([{ text: LEGEND, colour: 'dim' }])
    terminal.hideCursor()
  }
  terminal.write('\n')
  const summaries: Summary[] = []
  for (const act of ACTS) summaries.push(await (fast ? playFast : playLive)(act, seed))
  const titles = ACTS.map(({ title }) => title)
  for (const line of table(titles, summaries, terminal.width)) terminal.print(line)
  if (fast) return
  terminal.write('\n')
  for (const text of NEXT) terminal.print([{ text }])
}

// The reader of the output may end early: `npm run demo | head`.
process.stdout.on('error', () => process.exit(0))
process.once('SIGINT', () => process.exit(0))
process.once('SIGTERM', () => process.exit(143))

const request = readArguments(process.argv.slice(2))
if (request.kind === 'help') {
  terminal.write(HELP)
} else if (request.kind === 'mistake') {
  process.stderr.write(`${request.message}\nnpm run demo -- --help tells what there is.\n`)
  process.exitCode = 1
} else {
  await run(request)
}
