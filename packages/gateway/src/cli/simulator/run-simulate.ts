/** `spillway simulate`: runs a scenario, shows its progress and prints the result. */
import { writeFileSync } from 'node:fs'
import { renderHtml, renderText, SCENARIOS, type Scenario, simulate } from '@spillway/simulator'
import { findScenario, guardOf } from './read-scenario-file.js'

export interface SimulateCommand {
  /** Name of a built-in scenario, `all` for all of them, or a file. */
  readonly what: string
  readonly config: string | undefined
  readonly vendor: string | undefined
  readonly seed: number | undefined
  readonly pods: number | undefined
  readonly report: string | undefined
  readonly json: boolean
}

const BAR = 30

export function listScenarios(): string {
  const widest = Math.max(...SCENARIOS.map(({ name }) => name.length))
  const lines = SCENARIOS.map(({ name, title }) => `  ${name.padEnd(widest)}  ${title}`)
  return `${lines.join('\n')}\n\nspillway simulate ${SCENARIOS[0]!.name} --report report.html\n`
}

/** Returns whether all expectations hold. */
export async function runSimulate(command: SimulateCommand): Promise<boolean> {
  const chosen = command.what === 'all' ? SCENARIOS : [findScenario(command.what)]
  const results: string[] = []
  let passed = true
  for (const scenario of chosen) {
    const { json, text, holds } = await runOne(scenario, command)
    passed &&= holds
    if (command.json) results.push(json)
    else process.stdout.write(`${text}\n`)
  }
  if (command.json) {
    process.stdout.write(command.what === 'all' ? `[${results.join(',\n')}]\n` : `${results[0]}\n`)
  }
  return passed
}

async function runOne(scenario: Scenario, command: SimulateCommand) {
  const { config, vendor, seed, pods, report } = command
  const progress = createProgress(scenario.name ?? command.what)
  const simulation = await simulate(scenario, {
    ...(seed !== undefined && { seed }),
    ...(pods !== undefined && { pods }),
    ...(config !== undefined && { guard: guardOf(config, vendor) }),
    onProgress: progress.show,
  }).finally(progress.hide)
  let text = renderText(simulation)
  if (report !== undefined) {
    writeFileSync(report, renderHtml(simulation))
    text += `Report: ${report}\n`
  }
  return { json: JSON.stringify(simulation), text, holds: simulation.passed }
}

/** Only on a terminal, and always on stderr. */
function createProgress(name: string) {
  if (!process.stderr.isTTY) return { show: () => {}, hide: () => {} }
  return {
    show(part: number, kind: 'spillway' | 'naive') {
      const done = Math.round(BAR * part)
      const bar = '█'.repeat(done) + '░'.repeat(BAR - done)
      const which = kind === 'spillway' ? 'with Spillway' : 'without      '
      process.stderr.write(`\r${name} ${which} ${bar} ${Math.round(part * 100)} %\x1b[K`)
    },
    hide() {
      process.stderr.write('\r\x1b[K')
    },
  }
}
