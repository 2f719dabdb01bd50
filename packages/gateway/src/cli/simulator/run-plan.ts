/** `spillway plan`: computes guard options, or checks those of a configuration, and simulates them. */
import { writeFileSync } from 'node:fs'
import {
  checkNeeds,
  findConflicts,
  type Plan,
  type PlanNeeds,
  planFor,
  rehearse,
  renderText,
  type Simulation,
} from '@spillway/simulator'
import { stringify } from 'yaml'
import { guardOf } from './read-scenario-file.js'

export interface PlanCommand {
  readonly needs: PlanNeeds
  /** A configuration whose guard is checked. Undefined: options are computed. */
  readonly config: string | undefined
  readonly vendor: string | undefined
  readonly out: string | undefined
  readonly json: boolean
  readonly check: boolean
}

/** Returns whether the plan holds in the simulation. */
export async function runPlan({
  needs,
  config,
  vendor,
  out,
  json,
  check,
}: PlanCommand): Promise<boolean> {
  const plan = config === undefined ? planFor(needs) : planOf(guardOf(config, vendor), needs)
  const rehearsal = check ? await rehearse(needs, plan.guard) : undefined
  if (out !== undefined) writeFileSync(out, configOf(plan))
  if (json) process.stdout.write(`${JSON.stringify({ ...plan, rehearsal })}\n`)
  else process.stdout.write(textOf(plan, rehearsal, out))
  return rehearsal?.passed !== false
}

/** A plan that only checks existing options. */
function planOf(guard: Plan['guard'], needs: PlanCommand['needs']): Plan {
  return { guard, numbers: [], warnings: findConflicts(guard, checkNeeds(needs)) }
}

function textOf(plan: Plan, rehearsal: Simulation | undefined, out: string | undefined): string {
  const lines: string[] = []
  const [path, value] = [widest(plan, 'path'), widest(plan, 'value')]
  for (const each of plan.numbers) {
    lines.push(`${each.path.padEnd(path)}  ${each.value.padEnd(value)}  ${each.because}`)
  }
  if (plan.numbers.length > 0) lines.push('')
  lines.push(plan.warnings.length === 0 ? 'No options contradict each other.' : 'Warnings:')
  for (const warning of plan.warnings) lines.push(`  ! ${warning}`)
  if (rehearsal !== undefined) {
    const { storeCommands } = rehearsal.spillway.totals
    const rate = (storeCommands * 1_000) / rehearsal.durationMs
    lines.push('', `Redis: about ${Math.ceil(rate)} commands a second, as simulated.`)
    lines.push('', 'Tried out in the simulator:', '', renderText(rehearsal).trimEnd())
  }
  if (out !== undefined) lines.push('', `Written: ${out}`)
  return `${lines.join('\n')}\n`
}

function widest({ numbers }: Plan, what: 'path' | 'value'): number {
  return Math.max(0, ...numbers.map((each) => each[what].length))
}

function configOf({ guard, numbers }: Plan): string {
  const reasons = numbers.map((each) => `# ${each.path}: ${each.value}, because: ${each.because}`)
  const vendor = { protocol: 'openai', key: 'env:VENDOR_API_KEY', ...guard }
  return `# Written by spillway plan.\n${reasons.join('\n')}\n${stringify({ vendors: { vendor } })}`
}
