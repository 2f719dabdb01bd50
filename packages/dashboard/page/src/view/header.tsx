/** The header of the page: navigation, connection, store, and the time range of the charts. */
import { computed } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { formatCount } from '../format'
import { NO_FILTER } from '../model/decision-log'
import {
  feedState,
  guardCards,
  hello,
  pausedAt,
  queuesTick,
  store,
  togglePause,
} from '../model/live'
import { RANGES, range, type Theme, theme } from '../model/preferences'
import { hrefOf, type Route, route } from '../model/route'
import { lookOfGuard } from './breaker-text'
import { Badge, Name } from './elements'
import { Icon, type IconName, Logo } from './icons'

export function Header() {
  const head = useRef<HTMLElement>(null)
  // Panels that stick below the head need its height, which depends on the width.
  useEffect(() => {
    const element = head.current
    if (element === null) return undefined
    const sizes = new ResizeObserver(() => {
      document.documentElement.style.setProperty('--head', `${element.offsetHeight}px`)
    })
    sizes.observe(element)
    return () => sizes.disconnect()
  }, [])
  return (
    <header class="top" ref={head}>
      <div class="top-row">
        <a class="brand" href="#/fleet">
          <Logo />
          Spillway
        </a>
        <div class="top-facts">
          <LiveBadge />
          <StoreBadge />
          <PodName />
        </div>
        <div class="top-tools">
          <RangePicker />
          <span class="row">
            <PauseButton />
            <ThemeButton />
          </span>
        </div>
      </div>
      <Tabs />
    </header>
  )
}

function PodName() {
  const known = hello.value
  if (known === undefined) return null
  return (
    <span class="row">
      <span>
        served by <Name text={known.pod} />
      </span>
    </span>
  )
}

function LiveBadge() {
  const { kind } = feedState.value
  if (kind === 'lost') {
    return (
      <Badge tone="refused" icon="warning">
        disconnected
      </Badge>
    )
  }
  if (kind === 'locked' || kind === 'barred') {
    return (
      <Badge tone="iso" icon="lock">
        locked
      </Badge>
    )
  }
  if (kind === 'connecting') {
    return (
      <Badge tone="quiet" icon="waited">
        connecting
      </Badge>
    )
  }
  return pausedAt.value === undefined ? (
    <Badge tone="good" icon="closed">
      live
    </Badge>
  ) : (
    <Badge tone="flow" icon="pause">
      paused
    </Badge>
  )
}

function StoreBadge() {
  const known = store.value
  // Unknown without a connection.
  if (known === undefined || feedState.value.kind === 'lost') return null
  switch (known.status) {
    case 'shared':
      return (
        <Badge tone="good" icon="shared">
          Redis shared
        </Badge>
      )
    case 'memory':
      return (
        <Badge tone="quiet" icon="local">
          one process, no Redis
        </Badge>
      )
    case 'starting':
      return (
        <Badge tone="quiet" icon="waited">
          Redis connecting
        </Badge>
      )
    default:
      return (
        <Badge tone="warn" icon="warning">
          degraded
        </Badge>
      )
  }
}

function RangePicker() {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be a frame with a legend
    <div class="segments" role="group" aria-label="Time shown in charts">
      {RANGES.map((each) => (
        <button
          key={each.ms}
          type="button"
          aria-pressed={range.value === each}
          onClick={() => {
            range.value = each
          }}
        >
          {each.label}
        </button>
      ))}
    </div>
  )
}

function PauseButton() {
  const paused = pausedAt.value !== undefined
  return (
    <button type="button" aria-pressed={paused} onClick={togglePause}>
      <Icon name={paused ? 'play' : 'pause'} size={13} />
      {paused ? 'Resume' : 'Pause'}
    </button>
  )
}

const THEMES: Record<Theme, { next: Theme; icon: IconName; word: string }> = {
  system: { next: 'light', icon: 'system', word: 'system setting' },
  light: { next: 'dark', icon: 'sun', word: 'light' },
  dark: { next: 'system', icon: 'moon', word: 'dark' },
}

function ThemeButton() {
  const { next, icon, word } = THEMES[theme.value]
  return (
    <button
      type="button"
      class="plain"
      aria-label={`Colours: ${word}. Change to ${THEMES[next].word}`}
      title={`Colours: ${word}`}
      onClick={() => {
        theme.value = next
      }}
    >
      <Icon name={icon} size={17} />
    </button>
  )
}

const openBreakers = computed(
  () =>
    guardCards.value.filter(({ name }) => {
      const look = lookOfGuard(name)
      return look !== 'closed' && look !== 'none'
    }).length,
)
const deadJobs = computed(() =>
  (queuesTick.value?.jobQueues ?? []).reduce((sum, { dead }) => sum + dead, 0),
)

function Tabs() {
  const guards = hello.value?.guards.length
  return (
    <nav class="tabs" aria-label="Pages">
      <Tab to={{ page: 'fleet' }} label="Fleet" />
      <Tab to={{ page: 'guards', guard: undefined, lane: undefined }} label="Guards">
        {openBreakers.value > 0 ? (
          <span class="tab-count tone-refused">
            {openBreakers.value}
            <span class="visually-hidden"> not closed</span>
          </span>
        ) : (
          guards !== undefined && <span class="tab-count">{guards}</span>
        )}
      </Tab>
      <Tab to={{ page: 'why', filter: NO_FILTER }} label="Why" />
      <Tab to={{ page: 'queues' }} label="Job queues">
        {deadJobs.value > 0 && (
          <span class="tab-count tone-refused">
            {formatCount(deadJobs.value)}
            <span class="visually-hidden"> dead letters</span>
          </span>
        )}
      </Tab>
    </nav>
  )
}

function Tab({
  to,
  label,
  children,
}: {
  to: Route
  label: string
  children?: preact.ComponentChildren
}) {
  const here = route.value.page === to.page
  return (
    <a href={hrefOf(to)} aria-current={here ? 'page' : undefined}>
      {label}
      {children}
    </a>
  )
}
