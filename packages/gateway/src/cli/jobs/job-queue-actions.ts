/** `spillway job-queue`: shows job queues and handles dead letters. */
import { createInterface } from 'node:readline/promises'
import type { JobCounts, JobInfo, TenantCounts } from 'spillway/shared'
import { formatRoughDuration } from '../format-duration.js'
import { table } from '../text-table.js'
import {
  type NamedQueue,
  type OpenQueues,
  openQueues,
  type QueueCommand,
} from './open-job-queues.js'

/** Whether there was anything to do, and it was done. */
export async function runQueue(command: QueueCommand): Promise<boolean> {
  const queues = await openQueues(command)
  try {
    if (command.verb === 'ls') return await list(queues, command.json)
    const queue = queues.open(command.name)
    if (command.verb !== 'show') return await change(queue, command)
    const { id, count, json } = command
    return id === undefined ? await show(queue, count, json) : await showJob(queue, id, json)
  } finally {
    await queues.close()
  }
}

async function list({ configured, open }: OpenQueues, json: boolean): Promise<boolean> {
  const rows = await Promise.all(
    configured.map(async ({ name, vendor, model }) => {
      return { name, vendor, model, ...(await open(name).jobs.counts()) }
    }),
  )
  if (json) print(JSON.stringify(rows))
  else if (rows.length === 0) print('No queues: the configuration has none under jobQueues.')
  else
    print(
      table(
        ['QUEUE', ...HEAD],
        rows.map((row) => [row.name, ...cellsOf(row)]),
      ),
    )
  return true
}

async function show({ name, guard, jobs }: NamedQueue, count: number, json: boolean) {
  const wanted = { tenants: MOST_TENANTS }
  const [counts, dead] = await Promise.all([jobs.counts(wanted), jobs.dead({ count })])
  const letters = dead.map(brief)
  if (json) {
    print(JSON.stringify({ name, guard, ...counts, letters }))
    return true
  }
  const lines = [`${name}, of ${guard}${counts.paused ? ', paused' : ''}`, '']
  lines.push(
    table([...HEAD, 'EXPIRED LEASES'], [[...cellsOf(counts), String(counts.expiredLeases)]]),
  )
  const { critical, high, normal, low } = counts.byPriority
  lines.push(`waiting: critical ${critical}, high ${high}, normal ${normal}, low ${low}`)
  if (counts.tenants !== undefined && counts.waiting > 0) {
    lines.push('', ...tenantLines(counts.tenants, counts.waiting))
  }
  if (letters.length > 0) {
    lines.push('', `Dead letters, ${letters.length} of ${counts.dead}, the oldest first:`, '')
    const rows = letters.map(({ id, attempt, tenant = '', ageMs, error = '' }) => {
      return [id, String(attempt), oneLine(tenant), formatRoughDuration(ageMs), oneLine(error)]
    })
    lines.push(table(['ID', 'TRIED', 'TENANT', 'AGE', 'WHY'], rows))
  }
  print(lines.join('\n'))
  return true
}

function tenantLines({ exact, top, others }: TenantCounts, waiting: number): string[] {
  const rows = top.map(({ tenant, waiting, byPriority }) => {
    const { critical, high, normal, low } = byPriority
    const name = tenant === undefined ? '(none)' : oneLine(tenant)
    return [name, ...[waiting, critical, high, normal, low].map(String)]
  })
  const left = waiting - top.reduce((sum, each) => sum + each.waiting, 0)
  return [
    exact ? 'Tenants, by what waits:' : 'Tenants, by what waits, about:',
    '',
    table(['TENANT', 'WAITING', 'CRITICAL', 'HIGH', 'NORMAL', 'LOW'], rows),
    ...(others > 0 ? [`and ${others} more, with ${Math.max(0, left)}`] : []),
  ]
}

async function showJob({ name, jobs }: NamedQueue, id: string, json: boolean): Promise<boolean> {
  const job = await jobs.job(id)
  if (job === undefined) return complain(`${name}: there is no job ${id}`)
  const facts = brief(job)
  if (json) print(JSON.stringify(facts))
  else {
    const rows = Object.entries(facts).filter(([, value]) => value !== undefined)
    print(rows.map(([fact, value]) => `${fact.padEnd(WIDEST)}${textOf(value)}`).join('\n'))
  }
  return true
}

type Change = Extract<QueueCommand, { verb: 'retry' | 'drop' }>

async function change({ name, jobs }: NamedQueue, command: Change): Promise<boolean> {
  const { verb, id, yes, json } = command
  if (id === undefined && verb === 'drop' && !yes) {
    const { dead } = await jobs.counts()
    if (dead > 1 && !(await confirmed(`${name}: drop ${dead} dead letters for good?`))) return false
  }
  const count = await (verb === 'retry' ? jobs.replay(id) : jobs.drop(id))
  if (json)
    print(JSON.stringify({ queue: name, [verb === 'retry' ? 'retried' : 'dropped']: count }))
  else if (count > 0) print(`${name}: ${verb === 'retry' ? 'sent back' : 'dropped'} ${count}`)
  if (count === 0 && !json) {
    complain(id === undefined ? `${name}: no dead letters` : `${name}: no dead letter ${id}`)
  }
  return count > 0
}

/** Prompts only if a terminal is attached. */
async function confirmed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return complain(`${question} Confirm with --yes`)
  const dialogue = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await dialogue.question(`${question} [y/N] `)
    return /^y(es)?$/i.test(answer.trim()) || complain('Nothing was dropped.')
  } finally {
    dialogue.close()
  }
}

/** Without its data: requests and answers are confidential. */
function brief(job: JobInfo) {
  const { data, result, key: _, ...facts } = job
  const request = typeof data === 'object' && data !== null ? data : {}
  const { method, path } = request as Record<string, unknown>
  const answer = (result as { status?: unknown } | undefined)?.status
  // A query may have a key in it.
  const place = typeof path === 'string' ? path.split('?', 1)[0] : undefined
  return { ...facts, method, path: place, answer }
}

const HEAD = ['WAITING', 'DELAYED', 'RUNNING', 'DONE', 'DEAD', 'OLDEST', 'STATE']
const WIDEST = 12
const MOST_TENANTS = 8

function cellsOf({ waiting, delayed, active, done, dead, oldestMs, paused }: JobCounts): string[] {
  const numbers = [waiting, delayed, active, done, dead].map(String)
  return [...numbers, formatRoughDuration(oldestMs), paused ? 'paused' : 'open']
}

/** Removes control characters: errors may contain text of a vendor. */
function oneLine(text: string): string {
  return text.replace(/[^\x20-\x7e\xa0-\u{10ffff}]+|\p{Cf}+/gu, ' ').slice(0, 100)
}

function textOf(value: unknown): string {
  return oneLine(typeof value === 'string' ? value : JSON.stringify(value))
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

function complain(text: string): false {
  process.stderr.write(`${text}\n`)
  return false
}
