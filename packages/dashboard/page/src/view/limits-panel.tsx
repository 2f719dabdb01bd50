/** Vendor limits: remaining units, and when the next unit becomes free. */
import { countOf, formatCount, formatMs, formatSeconds, formatShare } from '../format'
import type { EstimateTick, GuardCard, LaneTick, LimitTick } from '../wire'
import { may, openActDialog } from './act-dialog'
import { Badge, Empty, Meter, Name, Panel } from './elements'
import type { GuardInView } from './guard-in-view'
import { leftOf, leftTone, tightestOf } from './limit-text'
import { sinceTick } from './stage-facts'

const MOST_LANES = 6
const TEN_MINUTES_MS = 600_000

export function LimitsPanel({ card, tick, lane }: GuardInView) {
  const lanes = tick.lanes.filter(
    (each) =>
      (each.limits.length > 0 || each.pausedMs !== undefined) &&
      (lane === undefined || each.lane === lane),
  )
  const shown = [...lanes]
    .sort((a, b) => (tightestOf([a])?.left ?? 1) - (tightestOf([b])?.left ?? 1))
    .slice(0, MOST_LANES)
  return (
    <Panel title="Vendor limits" note="left for all pods">
      {shown.length === 0 && (
        <Empty title="Unused so far">
          {(card.limits ?? []).map(({ id, limit, ...window }) => (
            <p key={id}>
              {formatCount(limit)} {id} {perWindow(window)}
            </p>
          ))}
        </Empty>
      )}
      <div class="stack">
        {shown.map((each) => (
          <div key={each.lane} class="stack lane-limits">
            {(lanes.length > 1 || (each.pausedMs ?? 0) > 0) && (
              <div class="row">
                {lanes.length > 1 && <Name text={each.lane} />}
                <Paused lane={each} />
              </div>
            )}
            {each.limits.map((limit) => (
              <Limit key={limit.id} limit={limit} card={card} />
            ))}
          </div>
        ))}
        {tick.estimates !== undefined && <Estimates estimates={tick.estimates} />}
      </div>
      {lanes.length > shown.length && (
        <p class="note">{countOf(lanes.length - shown.length, 'more lane')} in the table below</p>
      )}
    </Panel>
  )
}

/** Costs are reserved before the vendor reports them. */
function Estimates({ estimates }: { estimates: readonly EstimateTick[] }) {
  return (
    <div class="stack lane-limits">
      {estimates.map(({ unit, calls, ratio, near }) => (
        <p key={unit} class="note" data-estimate={unit}>
          Estimates of <bdi>{unit}</bdi>, this pod: lately {formatShare(ratio)} of the actual cost;
          within 80 to 125 % for {formatShare(near)} of {countOf(calls, 'call')}
        </p>
      ))}
    </div>
  )
}

function Paused({ lane }: { lane: LaneTick }) {
  const leftMs = (lane.pausedMs ?? 0) - sinceTick()
  if (leftMs <= 0) return null
  return (
    <Badge tone="iso" icon="pause">
      paused for {formatSeconds(leftMs)}
    </Badge>
  )
}

/** `per 1 min`, or `per day (Europe/Berlin)`. */
function perWindow({ windowMs, timeZone }: { windowMs?: number; timeZone?: string }): string {
  return windowMs === undefined ? `per day (${timeZone})` : `per ${formatMs(windowMs)}`
}

function Limit({ limit, card }: { limit: LimitTick; card: GuardCard }) {
  const { id, label } = limit
  const known = card.limits?.find((each) => each.id === id)
  const left = leftOf(limit)
  const window = known === undefined ? '' : ` ${perWindow(known)}`
  return (
    <div class="limit" data-limit={id}>
      {left === undefined ? (
        <Meter
          label={`${label}${window}`}
          value={0}
          most={1}
          tone="quiet"
          words={`share of ${formatCount(limit.limit)}`}
          hint="The remaining amount is unknown while the store is unreachable."
        />
      ) : (
        <Meter
          label={`${label} left${window}`}
          value={left}
          most={1}
          tone={leftTone(left)}
          words={`${formatCount(limit.remaining ?? 0)} of ${formatCount(limit.limit)}`}
          hint={<Hint limit={limit} />}
        />
      )}
      {may('limit') && (
        <button
          type="button"
          class="small"
          onClick={() => {
            const { limit: now } = limit
            openActDialog({ act: 'limit', guard: card.name, id, limit: now, forMs: TEN_MINUTES_MS })
          }}
        >
          Change …<bdi class="visually-hidden"> {label}</bdi>
        </button>
      )}
    </div>
  )
}

function Hint({
  limit: { limit, remaining, used, nextFreeMs, scope, ageMs, configured, usual },
}: {
  limit: LimitTick
}) {
  const nextMs = (nextFreeMs ?? 0) - sinceTick()
  let when = 'next unit free now'
  if ((remaining ?? 0) > 0) when = 'free now'
  else if (nextMs > 0) when = `next unit free in ${formatMs(Math.ceil(nextMs / 100) * 100)}`
  return (
    <>
      {when}; {formatCount(used ?? 0)} used;{' '}
      {scope === 'shared' ? `shared, ${formatMs(ageMs)} old` : 'share of this pod'}
      {configured !== undefined &&
        `; configured ${formatCount(configured)}, vendor gives ${formatCount(limit)}`}
      {usual !== undefined && `; changed by an operator, usual limit ${formatCount(usual)}`}
    </>
  )
}
