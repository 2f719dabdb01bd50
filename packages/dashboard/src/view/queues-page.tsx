/** Job queues: how much waits, for whom, how old it is, and what could not be done. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { formatCount, formatMs } from '../format'
import { readDeadLetters } from '../model/acting'
import { hello, queuesTick } from '../model/live'
import { hrefOf } from '../model/route'
import type { DeadLetters, QueueTick } from '../wire'
import { askFor, may } from './act-dialog'
import { Badge, Empty, Meter, Name, Panel, Scroller } from './bits'

const PRIORITIES = ['critical', 'high', 'normal', 'low'] as const
const MOST_LETTERS = 50

export function QueuesPage() {
  const queues = queuesTick.value?.queues ?? []
  if (queues.length === 0) {
    const expected = (hello.value?.queues.length ?? 0) > 0
    return (
      <Panel title="Job queues">
        <Empty title={expected ? 'Nothing is known of them yet' : 'No job queue'}>
          {expected ? (
            'The first figures come within a second.'
          ) : (
            <p>
              For work that may wait: <code>spillway.queue('mails', …)</code> keeps jobs in Redis
              and hands one out only together with its vendor’s permit.
            </p>
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
  const { name, guard, waiting, delayed, active, done, dead, paused, oldestMs, lapsed } = queue
  return (
    <section class="panel queue" aria-label={`Queue ${name}`}>
      <div class="page-head">
        <h2>
          <Name text={name} />
        </h2>
        {paused ? (
          <Badge tone="warn" icon="pause">
            paused
          </Badge>
        ) : (
          <Badge tone="good" icon="closed">
            working
          </Badge>
        )}
        <span class="quiet">
          goes by{' '}
          <a href={hrefOf({ page: 'guards', guard, lane: undefined })}>
            <Name text={guard} />
          </a>
        </span>
      </div>
      <div class="queue-figures">
        <Figure label="waiting" value={waiting} />
        <Figure label="running" value={active} />
        <Figure label="delayed" value={delayed} />
        <Figure label="done" value={done} />
        <Figure label="leases lapsed" value={lapsed} />
        <Figure label="dead letters" value={dead} bad={dead > 0} />
        <div class="queue-figure">
          <b>{waiting === 0 ? 'none' : formatMs(oldestMs)}</b>
          <span class="quiet">oldest waits</span>
        </div>
      </div>
      <div class="columns">
        <div class="stack">
          <h3>By priority</h3>
          {queue.byPriority === undefined ? (
            <p class="note">This store does not count them.</p>
          ) : (
            PRIORITIES.map((priority, index) => (
              <Meter
                key={priority}
                label={priority}
                value={queue.byPriority?.[index] ?? 0}
                most={Math.max(1, waiting)}
                words={formatCount(queue.byPriority?.[index] ?? 0)}
              />
            ))
          )}
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

function Figure({ label, value, bad = false }: { label: string; value: number; bad?: boolean }) {
  return (
    <div class={bad ? 'queue-figure tone-bad queue-bad' : 'queue-figure'}>
      <b>{formatCount(value)}</b>
      <span class="quiet">{label}</span>
    </div>
  )
}

function Tenants({ queue: { byTenant, tenantsLeftOut, waiting } }: { queue: QueueTick }) {
  if (byTenant === undefined) return <p class="note">This store does not count them.</p>
  if (byTenant.length === 0) return <p class="note">Nobody waits.</p>
  return (
    <>
      {byTenant.slice(0, 8).map((each) => (
        <Meter
          key={each.tenant}
          label={each.tenant === '' ? 'no tenant' : each.tenant}
          value={each.waiting}
          most={Math.max(1, waiting)}
          tone="iso"
          words={formatCount(each.waiting)}
        />
      ))}
      {(tenantsLeftOut ?? 0) > 0 && <p class="note">and {formatCount(tenantsLeftOut ?? 0)} more</p>}
    </>
  )
}

/** Read when there are others than before, and not every second. */
function Letters({ queue, dead }: { queue: string; dead: number }) {
  const letters = useSignal<DeadLetters['letters'] | undefined>(undefined)
  const problem = useSignal<string | undefined>(undefined)
  useEffect(() => {
    let wanted = true
    readDeadLetters(queue, MOST_LETTERS).then(
      (read) => {
        if (!wanted) return
        letters.value = read.letters
        problem.value = undefined
      },
      (error: Error) => {
        if (wanted) problem.value = error.message
      },
    )
    return () => {
      wanted = false
    }
  }, [queue, dead])
  return (
    <div class="letters">
      <div class="spread">
        <h3>Dead letters</h3>
        {may('replay') && (
          <button type="button" class="small" onClick={() => askFor({ act: 'replay', queue })}>
            Retry all {formatCount(dead)} …
          </button>
        )}
      </div>
      {problem.value !== undefined && <p class="note">They cannot be read now: {problem.value}</p>}
      {letters.value === undefined ? null : (
        <Scroller label={`Dead letters of ${queue}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">job</th>
                <th scope="col">tenant</th>
                <th scope="col">priority</th>
                <th scope="col" class="number">
                  attempts
                </th>
                <th scope="col" class="number">
                  age
                </th>
                <th scope="col">
                  <span class="visually-hidden">actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {letters.value.map(({ id, tenant, priority, attempt, attempts, ageMs }) => (
                <tr key={id}>
                  <th scope="row">
                    <Name text={id} />
                  </th>
                  <td>
                    {tenant === undefined ? (
                      <span class="quiet">none</span>
                    ) : (
                      <Name text={tenant} />
                    )}
                  </td>
                  <td>{priority}</td>
                  <td class="number">
                    {attempt} of {attempts}
                  </td>
                  <td class="number">{formatMs(ageMs)}</td>
                  <td class="number">
                    {may('replay') && (
                      <button
                        type="button"
                        class="small"
                        onClick={() => askFor({ act: 'replay', queue, id })}
                      >
                        Retry<span class="visually-hidden"> {id}</span>
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroller>
      )}
    </div>
  )
}
