/** Job queues: waiting jobs by priority and tenant, their age, and dead letters. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { countOf, formatCount, formatMs } from '../format'
import { readDeadLetters } from '../model/acting'
import { hello, queuesTick } from '../model/live'
import { hrefOf } from '../model/route'
import type { DeadLetters, QueueTick } from '../wire'
import { may, openActDialog } from './act-dialog'
import { BREAKER_LOOKS, lookOfLane } from './breaker-text'
import { Badge, Empty, Name, Panel } from './elements'
import { Depth, Priorities } from './priorities'
import { type Column, Table } from './table'

const MOST_LETTERS = 50
const AGAIN_MS = 3_000
/** Label of the default lane. */
const DEFAULT_LANE = 'default'
/** Example configuration of a job queue; `openai` is a placeholder for any vendor. */
const YAML_LINES = `jobQueues:
  later: { vendor: openai, model: gpt-4o-mini }`

export function QueuesPage() {
  const queues = queuesTick.value?.jobQueues ?? []
  if (queues.length === 0) {
    const expected = (hello.value?.jobQueues.length ?? 0) > 0
    return (
      <Panel title="Job queues">
        <Empty title={expected ? 'No figures yet' : 'No job queue'}>
          {expected ? (
            'The first ones arrive within a second.'
          ) : (
            <>
              <p>
                For work that may wait: a worker gets a job only together with its vendor permit.
              </p>
              <p>
                In a program, <code>spillway.jobQueue('mails', {`{ guard: '…' }`})</code>. In a
                gateway’s <code>spillway.yaml</code>, for requests with{' '}
                <code>prefer: respond-async</code>:
              </p>
              <pre>
                <code>{YAML_LINES}</code>
              </pre>
              <p>
                With Redis all pods share a queue, and it survives restarts. Without Redis it exists
                in this process only.
              </p>
            </>
          )}
        </Empty>
      </Panel>
    )
  }
  return (
    <>
      <h1 class="visually-hidden">Job queues</h1>
      {queues.map((queue) => (
        <Queue key={queue.name} queue={queue} />
      ))}
    </>
  )
}

function Queue({ queue }: { queue: QueueTick }) {
  const { name, guard, lane, waiting, delayed, active, done, dead, oldestMs, expiredLeases } = queue
  return (
    <section class="panel queue" aria-label={`Queue ${name}`}>
      <div class="page-head">
        <h2>
          <Name text={name} />
        </h2>
        <State queue={queue} />
        <span class="quiet">
          guard{' '}
          <a href={hrefOf({ page: 'guards', guard, lane })}>
            <Name text={guard} />
          </a>
          {lane !== DEFAULT_LANE && (
            <>
              , <Name text={lane} />
            </>
          )}
        </span>
      </div>
      <div class="queue-figures">
        <Figure label="waiting" value={waiting} />
        <Figure label="running" value={active} />
        <Figure label="delayed" value={delayed} />
        <Figure label="done" value={done} />
        <Figure label="expired leases" value={expiredLeases} />
        <Figure label="dead letters" value={dead} bad={dead > 0} />
        <div class="queue-figure">
          <b>{waiting === 0 ? '–' : formatMs(oldestMs)}</b>
          <span class="quiet">longest wait</span>
        </div>
      </div>
      <div class="queue-depths">
        <div class="stack">
          <h3>By priority</h3>
          <Priorities of={queue.byPriority} waiting={waiting} />
        </div>
        <div class="stack">
          <h3>By tenant</h3>
          <Tenants queue={queue} />
        </div>
      </div>
      {dead > 0 && <Letters queue={name} dead={dead} />}
    </section>
  )
}

/** While the breaker is open, workers get no jobs. */
function State({ queue: { paused, guard, lane } }: { queue: QueueTick }) {
  const look = lookOfLane(guard, lane)
  if (paused) {
    return (
      <Badge tone="warn" icon="pause">
        paused
      </Badge>
    )
  }
  if (look === 'open' || look === 'isolated' || look === 'self-isolated') {
    const { tone, icon, word } = BREAKER_LOOKS[look]
    return (
      <Badge tone={tone} icon={icon}>
        held: {look === 'self-isolated' ? 'this pod isolates itself' : `its breaker is ${word}`}
      </Badge>
    )
  }
  return (
    <Badge tone="good" icon="closed">
      working
    </Badge>
  )
}

function Figure({ label, value, bad = false }: { label: string; value: number; bad?: boolean }) {
  return (
    <div class={bad ? 'queue-figure tone-bad queue-bad' : 'queue-figure'}>
      <b>{formatCount(value)}</b>
      <span class="quiet">{label}</span>
    </div>
  )
}

function Tenants({ queue: { byTenant, waiting } }: { queue: QueueTick }) {
  const { top, others, othersWaiting, exact } = byTenant
  if (waiting === 0) return <p class="note">No job waits.</p>
  return (
    <>
      <div class="tenants">
        {top.map(({ tenant, waiting: own, byPriority }, place) => (
          <Depth
            // Shortened names may be equal, so the position is part of the key.
            key={place}
            label={tenant === '' ? 'no tenant' : tenant}
            of={byPriority}
            most={top[0]?.waiting ?? 1}
            words={`${exact ? '' : 'about '}${formatCount(own)}`}
          />
        ))}
      </div>
      {others > 0 && (
        <p class="note">
          and {countOf(others, 'more tenant')} with {countOf(othersWaiting, 'job')}
        </p>
      )}
      {!exact && <p class="note">Too many jobs to count each: these are estimates.</p>}
    </>
  )
}

/** Read when their number changes, not every second; read again after a failure. */
function Letters({ queue, dead }: { queue: string; dead: number }) {
  const letters = useSignal<DeadLetters['letters'] | undefined>(undefined)
  const problem = useSignal<string | undefined>(undefined)
  const failures = useSignal(0)
  useEffect(() => {
    let wanted = true
    let again: ReturnType<typeof setTimeout> | undefined
    readDeadLetters(queue, MOST_LETTERS).then(
      (read) => {
        if (!wanted) return
        letters.value = read.letters
        problem.value = undefined
      },
      (error: Error) => {
        if (!wanted) return
        problem.value = error.message
        again = setTimeout(() => failures.value++, AGAIN_MS)
      },
    )
    return () => {
      wanted = false
      clearTimeout(again)
    }
  }, [queue, dead, failures.value])
  return (
    <div class="letters">
      <div class="spread">
        <h3>Dead letters</h3>
        {may('replay') && (
          <button
            type="button"
            class="small"
            onClick={() => openActDialog({ act: 'replay', queue })}
          >
            Retry all {formatCount(dead)} …
          </button>
        )}
      </div>
      {problem.value !== undefined && (
        <p class="note">Dead letters cannot be read now: {problem.value}</p>
      )}
      {letters.value === undefined ? null : (
        <Table
          label={`Dead letters of ${queue}`}
          rows={letters.value}
          keyOf={({ id }) => id}
          columns={letterColumns(queue)}
        />
      )}
    </div>
  )
}

function letterColumns(queue: string): Column<DeadLetters['letters'][number]>[] {
  return [
    { title: 'job', of: ({ id }) => <Name text={id} /> },
    {
      title: 'tenant',
      of: ({ tenant }) =>
        tenant === undefined ? <span class="quiet">none</span> : <Name text={tenant} />,
    },
    { title: 'priority', of: ({ priority }) => priority },
    { title: 'attempts', number: true, of: ({ attempt, attempts }) => `${attempt} of ${attempts}` },
    { title: 'age', number: true, of: ({ ageMs }) => formatMs(ageMs) },
    {
      title: 'actions',
      untitled: true,
      number: true,
      of: ({ id }) =>
        may('replay') && (
          <button
            type="button"
            class="small"
            onClick={() => openActDialog({ act: 'replay', queue, id })}
          >
            Retry<bdi class="visually-hidden"> {id}</bdi>
          </button>
        ),
    },
  ]
}
