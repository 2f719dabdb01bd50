/** Banners for states that affect all figures: no connection, no store, paused, draining. */
import { formatSeconds, formatTime } from '../format'
import { now } from '../model/clock'
import { feedState, fleet, hello, KNOWN_WIRE, pausedAt, store, togglePause } from '../model/live'
import type { StoreStatus } from '../wire'
import { Icon } from './icons'

const DEGRADED: Record<Exclude<StoreStatus, 'memory' | 'starting' | 'shared'>, [string, string]> = {
  unreachable: [
    'Redis is not answering: degraded mode',
    'Pods share no state now. Each uses its share of the vendor limits and its own breakers (outage rules).',
  ],
  untrusted: [
    'Redis is back and not trusted yet: degraded mode',
    'It may have lost counts. Pods use their shares for one window, then share state again.',
  ],
  off: [
    'Sharing is switched off: degraded mode',
    'SPILLWAY_SHARED=off is set. Each pod uses its share of the vendor limits and its own breakers.',
  ],
}

export function Banners({ retry }: { retry: () => void }) {
  return (
    <div class="banners">
      <LostBanner retry={retry} />
      <StoreBanner />
      <PauseBanner />
      <VersionBanner />
      <DrainBanner />
    </div>
  )
}

function LostBanner({ retry }: { retry: () => void }) {
  const state = feedState.value
  if (state.kind !== 'lost') return null
  // Subscribes to the clock, for the countdown.
  now.value
  const waitMs = state.nextAt === undefined ? 0 : state.nextAt - Date.now()
  return (
    <div class="banner tone-refused" role="alert" data-testid="lost">
      <Icon name="warning" size={22} />
      <div class="banner-words">
        <strong>Connection to the gateway lost</strong>
        The page shows the state at {formatTime(state.sinceAt)}; {state.problem}.{' '}
        <span aria-hidden="true">
          {waitMs > 0 ? `Reconnecting in ${formatSeconds(waitMs)}.` : 'Reconnecting …'}
        </span>
      </div>
      <button type="button" onClick={retry}>
        Try now
      </button>
    </div>
  )
}

function StoreBanner() {
  const status = store.value
  if (status === undefined || !status.degraded) return null
  const word = status.status
  const [title, words] = DEGRADED[word as keyof typeof DEGRADED] ?? DEGRADED.unreachable
  return (
    <div class="banner tone-warn" role="alert" data-testid="degraded">
      <Icon name="warning" size={22} />
      <div class="banner-words">
        <strong>{title}</strong>
        Since {formatTime(status.sinceAt)}. {words}
        {status.problems.length > 0 && (
          <ul>
            {status.problems.slice(0, 4).map((problem) => (
              <li key={problem}>
                <bdi>{problem}</bdi>
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  )
}

function PauseBanner() {
  const at = pausedAt.value
  if (at === undefined) return null
  return (
    <div class="banner tone-flow" role="status">
      <Icon name="pause" size={18} />
      <div class="banner-words">
        <strong>Paused at {formatTime(at)}</strong>
        Figures do not change; new data is kept.
      </div>
      <button type="button" onClick={togglePause}>
        Resume
      </button>
    </div>
  )
}

function VersionBanner() {
  const wire = hello.value?.wire
  if (wire === undefined || wire === KNOWN_WIRE) return null
  return (
    <div class="banner tone-warn" role="alert">
      <Icon name="warning" size={22} />
      <div class="banner-words">
        <strong>This page and its gateway have different versions</strong>
        Some figures may be missing or wrong.
      </div>
      <button type="button" onClick={() => location.reload()}>
        Reload the page
      </button>
    </div>
  )
}

function DrainBanner() {
  const own = fleet.value?.pods[0]
  if (own === undefined || (own.state !== 'draining' && own.state !== 'drain-requested'))
    return null
  return (
    <div class="banner tone-iso" role="status">
      <Icon name="left" size={18} />
      <div class="banner-words">
        <strong>This pod is draining</strong>
        It takes no new requests and exits when the running ones have ended. Open the page of
        another pod.
      </div>
    </div>
  )
}
