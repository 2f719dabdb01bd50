/** Why was this refused? The last decisions, live, and everything about the one that is chosen. */
import { useComputed, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { formatCount } from '../format'
import { type DecisionFilter, MOST_DECISIONS, NO_FILTER } from '../model/decision-log'
import { decisionRate, decisions, decisionsVersion, guardCards, hello } from '../model/live'
import { replaceRoute, route } from '../model/route'
import type { Decision } from '../wire'
import { Empty, Panel } from './bits'
import { DecisionDetail } from './decision-detail'
import { DecisionList } from './decision-list'
import { CODES, titleOf } from './stage-words'

export function WhyPage() {
  const chosen = useSignal<Decision | undefined>(undefined)
  /** Somebody reads: the list stands still, or it would run away. */
  const held = useSignal<{ list: readonly Decision[]; at: number } | undefined>(undefined)
  const filter = route.value.page === 'why' ? route.value.filter : NO_FILTER
  const live = useComputed(() => {
    decisionsVersion.value
    return decisions.newest(route.value.page === 'why' ? route.value.filter : NO_FILTER)
  })
  const list = held.value?.list ?? live.value
  // Whoever asks for others, or for those of another process, does not want to read on.
  const boot = hello.value?.boot
  useEffect(() => {
    held.value = undefined
  }, [filter, boot])
  const change = (changed: DecisionFilter) => {
    replaceRoute({ page: 'why', filter: changed })
  }
  const hold = (on: boolean) => {
    if (on) held.value ??= { list: live.peek(), at: decisions.added }
    else held.value = undefined
  }
  const newer = held.value === undefined ? 0 : decisions.added - held.value.at
  const scope = hello.value?.hasPeers === true ? 'on all workers' : 'on this pod'
  const filtered = Object.values(filter).some((each) => each !== '')
  return (
    <div class="why">
      <h1 class="visually-hidden">Why was this refused?</h1>
      <Panel
        title="Recent decisions"
        note={`${formatCount(decisionRate.value)} a second ${scope}, the newest first; the last ${formatCount(MOST_DECISIONS)} are kept`}
      >
        <Filters filter={filter} change={change} />
        {list.length === 0 ? (
          <Empty title={filtered ? 'No decision like this lately' : 'No decision yet'}>
            {filtered ? (
              <button type="button" onClick={() => change(NO_FILTER)}>
                Show all
              </button>
            ) : (
              'Every call that is admitted or refused appears here at once.'
            )}
          </Empty>
        ) : (
          <DecisionList
            list={list}
            chosen={chosen}
            hold={hold}
            held={held.value !== undefined}
            newer={newer}
          />
        )}
      </Panel>
      <DecisionDetail chosen={chosen} />
    </div>
  )
}

function Filters({
  filter,
  change,
}: {
  filter: DecisionFilter
  change: (filter: DecisionFilter) => void
}) {
  const stages = hello.value?.stages ?? []
  return (
    <search class="filters">
      <div class="field">
        <label for="filter-user">User</label>
        <input
          id="filter-user"
          type="search"
          placeholder="part of a name"
          value={filter.user}
          onInput={(event) => change({ ...filter, user: event.currentTarget.value })}
        />
      </div>
      <Choice
        id="guard"
        label="Vendor"
        value={filter.guard}
        options={guardCards.value.map(({ name }) => [name, name])}
        onChange={(guard) => change({ ...filter, guard })}
      />
      <Choice
        id="stage"
        label="Stage"
        value={filter.stage}
        options={stages.map(({ stage }, index) => [stage, `${index + 1} ${titleOf(stage)}`])}
        onChange={(stage) => change({ ...filter, stage })}
      />
      <Choice
        id="code"
        label="What became of it"
        value={filter.code}
        options={[
          ['refused', 'refused, whatever for'],
          ...CODES.map((code) => [code, code] as const),
        ]}
        onChange={(code) => change({ ...filter, code })}
      />
    </search>
  )
}

function Choice(props: {
  id: string
  label: string
  value: string
  options: readonly (readonly [value: string, label: string])[]
  onChange: (value: string) => void
}) {
  const id = `filter-${props.id}`
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <select
        id={id}
        value={props.value}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      >
        <option value="">any</option>
        {props.options.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </div>
  )
}
