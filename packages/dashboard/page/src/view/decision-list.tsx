/**
 * Thousands of decisions; only the visible rows are rendered. The list stops moving when the user scrolls or
 * selects a row.
 */
import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { countOf, formatMs, formatPreciseTime } from '../format'
import { isRefusal } from '../model/decision-log'
import type { Decision } from '../wire'
import { Name, type Tone } from './elements'
import { Icon, type IconName } from './icons'
import { titleOf } from './stage-text'

const ROW_PX = 44
const SPARE_ROWS = 6

interface DecisionListProps {
  list: readonly Decision[]
  chosen: Signal<Decision | undefined>
  hold: (on: boolean) => void
  held: boolean
  newer: number
  /** Called when a row was selected with a pointer or by touch. */
  onTap: () => void
}

export function DecisionList({ list, chosen, hold, held, newer, onTap }: DecisionListProps) {
  const box = useRef<HTMLDivElement>(null)
  const top = useSignal(0)
  const height = useSignal(440)
  useEffect(() => {
    const element = box.current
    if (element === null) return undefined
    const sizes = new ResizeObserver(() => {
      height.value = element.clientHeight
    })
    sizes.observe(element)
    return () => sizes.disconnect()
  }, [])

  const first = Math.max(0, Math.floor(top.value / ROW_PX) - SPARE_ROWS)
  const last = Math.min(list.length, Math.ceil((top.value + height.value) / ROW_PX) + SPARE_ROWS)
  const chosenAt = chosen.value === undefined ? -1 : list.indexOf(chosen.value)
  const choose = (index: number) => {
    const decision = list[Math.min(list.length - 1, Math.max(0, index))]
    if (decision === undefined) return
    hold(true)
    chosen.value = decision
  }
  const follow = () => {
    hold(false)
    box.current?.scrollTo({ top: 0 })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height.value / ROW_PX) - 1)
    const steps: Record<string, number> = {
      ArrowDown: chosenAt + 1,
      ArrowUp: chosenAt - 1,
      PageDown: chosenAt + page,
      PageUp: chosenAt - page,
      Home: 0,
      End: list.length - 1,
    }
    if (event.key === 'Escape') return follow()
    const to = steps[event.key]
    if (to === undefined) return
    event.preventDefault()
    choose(to)
    reveal(box.current, Math.min(list.length - 1, Math.max(0, to)))
  }
  return (
    <div class="decisions">
      <div class="list-status">
        {held ? (
          <>
            <button type="button" class="small primary" onClick={follow}>
              <Icon name="play" size={11} /> Resume
            </button>
            <span>The list is paused; {countOf(newer, 'newer decision')}.</span>
          </>
        ) : (
          <span>
            {countOf(list.length, 'decision')}; scrolling or selecting one pauses the list.
          </span>
        )}
      </div>
      <div
        ref={box}
        class="decision-box"
        role="listbox"
        aria-label="Decisions"
        tabIndex={0}
        aria-activedescendant={
          // Keyed by position, because ids are unique within one pod only.
          chosenAt === -1 ? undefined : `decision-${chosenAt}`
        }
        // The row under the pointer must not move before the user has selected it.
        onPointerDown={() => hold(true)}
        onScroll={(event) => {
          top.value = event.currentTarget.scrollTop
          if (event.currentTarget.scrollTop > 0) hold(true)
        }}
        onKeyDown={onKeyDown}
      >
        <div
          role="presentation"
          style={{ height: `${list.length * ROW_PX}px`, position: 'relative' }}
        >
          {list.slice(first, last).map((each, index) => (
            <Row
              // Keyed by position: keys by decision would create and remove thousands of rows per minute.
              key={first + index}
              decision={each}
              place={first + index}
              of={list.length}
              chosen={each === chosen.value}
              choose={(index) => {
                choose(index)
                onTap()
              }}
            />
          ))}
        </div>
      </div>
    </div>
  )
}

function reveal(box: HTMLElement | null, index: number): void {
  if (box === null) return
  const top = index * ROW_PX
  if (top < box.scrollTop) box.scrollTop = top
  else if (top + ROW_PX > box.scrollTop + box.clientHeight) {
    box.scrollTop = top + ROW_PX - box.clientHeight
  }
}

/** The code, with the HTTP status if there is one. */
export function codeOf({ code, status }: Decision): string {
  return status === undefined || code === 'OK' ? code : `${code} ${status}`
}

export function lookOfDecision({ code }: Decision): { tone: Tone; icon: IconName } {
  if (code === 'OK') return { tone: 'good', icon: 'passed' }
  if (code === 'ABORTED') return { tone: 'quiet', icon: 'left' }
  if (code === 'REJECTED') return { tone: 'warn', icon: 'refused' }
  return isRefusal(code) ? { tone: 'refused', icon: 'refused' } : { tone: 'bad', icon: 'warning' }
}

function Row(props: {
  decision: Decision
  place: number
  of: number
  chosen: boolean
  choose: (index: number) => void
}) {
  const { decision, place, of, chosen } = props
  const { tone, icon } = lookOfDecision(decision)
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys
    // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus, and names the active row
    <div
      id={`decision-${place}`}
      role="option"
      aria-selected={chosen}
      aria-posinset={place + 1}
      aria-setsize={of}
      class={`decision tone-${tone} ${place % 2 === 0 ? '' : 'decision-odd'}`}
      style={{ top: `${place * ROW_PX}px` }}
      onClick={() => props.choose(place)}
    >
      <span class="decision-time mono">{formatPreciseTime(decision.at)}</span>
      <span class="decision-code">
        <Icon name={icon} size={13} />
        {codeOf(decision)}
      </span>
      <span class="decision-guard">
        {decision.guard === '' ? <span>gateway</span> : <Name text={decision.guard} />}
        {decision.lane !== '' && decision.lane !== 'default' && (
          <span class="quiet">
            {' '}
            <Name text={decision.lane} />
          </span>
        )}
      </span>
      <span class="decision-user">
        {decision.user === undefined ? (
          <span class="quiet">no user</span>
        ) : (
          <Name text={decision.user} />
        )}
      </span>
      <span class="decision-stage quiet">{titleOf(decision.stage)}</span>
      <span class="decision-took">{formatMs(decision.tookMs)}</span>
    </div>
  )
}
