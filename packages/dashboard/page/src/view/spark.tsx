/** The last minutes of one figure, without axes; decoration beside the figure itself. */
import { useMemo } from 'preact/hooks'
import type { TwoTracks } from '../model/history'
import { historyVersion, pausedAt, serverNow } from '../model/live'

const POINTS = 60
const [WIDTH, HEIGHT] = [120, 28]

export function Spark({ tracks, column }: { tracks: (TwoTracks | undefined)[]; column: string }) {
  const version = historyVersion.value
  const path = useMemo(() => draw(tracks, column), [version, column])
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      <path class="spark-area" d={path === '' ? '' : `${path}V${HEIGHT}H0Z`} />
      <path class="spark-line" d={path} />
    </svg>
  )
}

function draw(tracks: (TwoTracks | undefined)[], column: string): string {
  // The second that has just begun is not complete.
  const to = (pausedAt.peek() ?? serverNow()) - 1_000
  const sums: (number | undefined)[] = []
  for (const each of tracks) {
    const fine = each?.fine
    if (fine === undefined) continue
    const [, values = []] = fine.read([column], to - (POINTS - 1) * fine.stepMs, to)
    for (const [index, value] of values.entries()) {
      const place = POINTS - values.length + index
      if (value !== null) sums[place] = (sums[place] ?? 0) + value
    }
  }
  const known = sums.filter((each) => each !== undefined)
  if (known.length < 2) return ''
  const top = Math.max(...known, 1e-9)
  let path = ''
  for (const [index, value] of sums.entries()) {
    // Unknown values are bridged: this is a sketch, the charts have the gaps.
    if (value === undefined) continue
    const x = ((index / (POINTS - 1)) * WIDTH).toFixed(1)
    const y = (HEIGHT - 2 - (value / top) * (HEIGHT - 5)).toFixed(1)
    path += path === '' ? `M0 ${y}L${x} ${y}` : `L${x} ${y}`
  }
  return `${path}H${WIDTH}`
}
