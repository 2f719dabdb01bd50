/** The latest decisions of all pods, and everything about the selected one. */
import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { formatCount } from '../format'
import { type DecisionFilter, MOST_DECISIONS, NO_FILTER } from '../model/decision-log'
import { decisionRate, decisions, decisionsVersion, fleet, guardCards, hello } from '../model/live'
import { replaceRoute, route } from '../model/route'
import type { Decision } from '../wire'
import { DecisionDetail } from './decision-detail'
import { DecisionList } from './decision-list'
import { Empty, Panel } from './elements'
import { RequestAnswer, useRequestSearch } from './request-search'
import { CODES, titleOf } from './stage-text'

/** Below this width the explanation is under the list. */
const ONE_COLUMN = '(max-width: 1019px)'

export function WhyPage() {
  const chosen = useSignal<Decision | undefined>(undefined)
  /** The list does not move while the user reads. */
  const held = useSignal<{ list: readonly Decision[]; at: number } | undefined>(undefined)
  const detail = useRef<HTMLDivElement>(null)
  /** The user has selected a row whose explanation is not drawn yet. */
  const isTapped = useRef(false)
  const filter = route.value.page === 'why' ? route.value.filter : NO_FILTER
  const live = useComputed(() => {
    decisionsVersion.value
    return decisions.newest(route.value.page === 'why' ? route.value.filter : NO_FILTER)
  })
  const search = useRequestSearch(filter.request)
  const listed = held.value?.list ?? live.value
  const list = listed.length === 0 ? search.decisions : listed
  // Another filter, or another process, ends the pause.
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
  const show = (decision: Decision) => {
    chosen.value = decision
  }
  const onTap = () => {
    isTapped.current = true
  }
  // After the explanation is drawn: before, the page may be too short to scroll that far.
  useLayoutEffect(() => {
    if (!isTapped.current) return
    isTapped.current = false
    if (matchMedia(ONE_COLUMN).matches) detail.current?.scrollIntoView({ block: 'start' })
  })
  const newer = held.value === undefined ? 0 : decisions.added - held.value.at
  const filtered = Object.values(filter).some((each) => each !== '')
  return (
    <div class="why">
      <h1 class="visually-hidden">Why was a call refused?</h1>
      <Panel
        title="Recent decisions"
        note={`${scopeOf()}, ${formatCount(decisionRate.value)}/s, newest first; the last ${formatCount(MOST_DECISIONS)} are kept`}
      >
        <Filters filter={filter} change={change} />
        <RequestAnswer search={search} />
        {list.length === 0 ? (
          <Empty title={filtered ? 'No recent decision matches' : 'No decision yet'}>
            {filtered ? (
              <button type="button" onClick={() => change(NO_FILTER)}>
                Show all
              </button>
            ) : (
              'Each admitted or refused call appears here at once.'
            )}
          </Empty>
        ) : (
          <DecisionList
            list={list}
            chosen={chosen}
            hold={hold}
            held={held.value !== undefined}
            newer={newer}
            onTap={onTap}
          />
        )}
      </Panel>
      <div ref={detail} class={chosen.value === undefined ? 'why-detail' : 'why-detail why-chosen'}>
        <DecisionDetail chosen={chosen} show={show} />
      </div>
    </div>
  )
}

function scopeOf(): string {
  const pods = fleet.value?.pods.length ?? 1
  if (pods > 1) return `all ${formatCount(pods)} pods`
  return hello.value?.hasPeers === true ? 'all workers' : 'this pod'
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
      <Search
        id="request"
        label="Request id"
        hint="whole or part"
        value={filter.request}
        onInput={(request) => change({ ...filter, request })}
      />
      <Search
        id="user"
        label="User"
        hint="part of a name"
        value={filter.user}
        onInput={(user) => change({ ...filter, user })}
      />
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
        options={[
          ['request', 'the gateway itself'],
          ...stages.map(({ stage }, index) => [stage, `${index + 1} ${titleOf(stage)}`] as const),
        ]}
        onChange={(stage) => change({ ...filter, stage })}
      />
      <Choice
        id="code"
        label="Result"
        value={filter.code}
        options={[
          ['refused', 'all refusals'],
          ['failed', 'all failures'],
          ...CODES.map((code) => [code, code] as const),
        ]}
        onChange={(code) => change({ ...filter, code })}
      />
    </search>
  )
}

function Search(props: {
  id: string
  label: string
  hint: string
  value: string
  onInput: (value: string) => void
}) {
  const id = `filter-${props.id}`
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <input
        id={id}
        type="search"
        placeholder={props.hint}
        value={props.value}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
    </div>
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
