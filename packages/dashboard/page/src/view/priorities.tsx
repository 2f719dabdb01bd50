/** Waiting calls or jobs by priority, in total and per queue. Each priority has one shade in both. */
import type { ComponentChildren } from 'preact'
import { formatCount } from '../format'
import type { ByPriority } from '../wire'

const PRIORITIES = ['critical', 'high', 'normal', 'low'] as const

/** One row per priority, which is the legend for the shades of `Depth`. */
export function Priorities({ of, waiting }: { of: ByPriority; waiting: number }) {
  return (
    <>
      {PRIORITIES.map((priority, index) => {
        const only = of.map((count, place) => (place === index ? count : 0)) as ByPriority
        const words = formatCount(of[index] ?? 0)
        return <Line key={priority} label={priority} of={only} most={waiting} words={words} />
      })}
    </>
  )
}

/** Waiting calls or jobs of one queue, in proportion to `most`. */
export function Depth(props: {
  label: string
  of: ByPriority
  most: number
  words: ComponentChildren
}) {
  const parts = PRIORITIES.flatMap((priority, index) => {
    const count = props.of[index] ?? 0
    return count === 0 ? [] : `${formatCount(count)} ${priority}`
  })
  return <Line {...props} hint={parts.join(', ')} />
}

function Line(props: {
  label: string
  of: ByPriority
  most: number
  words: ComponentChildren
  hint?: string
}) {
  const { label, of, most, words, hint } = props
  return (
    <div class="meter">
      <div class="meter-words">
        <bdi class="meter-label" title={label}>
          {label}
        </bdi>
        <span class="figure">{words}</span>
      </div>
      <div class="bar depth" aria-hidden="true">
        {of.map((count, index) => (
          <i
            key={PRIORITIES[index]}
            class={`depth-${PRIORITIES[index]}`}
            style={{ width: `${((100 * count) / Math.max(1, most)).toFixed(2)}%` }}
          />
        ))}
      </div>
      {hint !== undefined && <div class="meter-hint">{hint}</div>}
    </div>
  )
}
