/** Small elements that all views use. */
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { Icon, type IconName } from './icons'

/** A name chosen by a user or caller: text of any script and length, which must not change the layout. */
export function Name({ text, full = false }: { text: string; full?: boolean }) {
  return (
    <bdi class={full ? 'name name-full' : 'name'} title={full ? undefined : text}>
      {text}
    </bdi>
  )
}

export function Panel(props: {
  title: string
  note?: ComponentChildren
  class?: string
  children: ComponentChildren
}) {
  const id = useId()
  return (
    <section class={`panel ${props.class ?? ''}`} aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{props.title}</h2>
        {props.note !== undefined && <p class="note">{props.note}</p>}
      </header>
      {props.children}
    </section>
  )
}

export type Tone = 'good' | 'flow' | 'refused' | 'warn' | 'bad' | 'iso' | 'quiet'

/** A state: icon, text and colour. */
export function Badge({
  tone,
  icon,
  children,
}: {
  tone: Tone
  icon: IconName
  children: ComponentChildren
}) {
  return (
    <span class={`badge tone-${tone}`}>
      <Icon name={icon} size={13} />
      <span>{children}</span>
    </span>
  )
}

/** A usage bar with its value as text, because a screen reader cannot read the bar. */
export function Meter(props: {
  label: string
  value: number
  most: number
  tone?: Tone
  words: ComponentChildren
  hint?: ComponentChildren
}) {
  const { label, value, most, tone = 'flow' } = props
  const share = most > 0 ? Math.min(1, Math.max(0, value / most)) : 0
  return (
    <div class={`meter tone-${tone}`}>
      <div class="meter-words">
        <bdi class="meter-label">{label}</bdi>
        <span class="figure">{props.words}</span>
      </div>
      <div class="bar" aria-hidden="true">
        <div class="bar-fill" style={{ transform: `scaleX(${share.toFixed(4)})` }} />
      </div>
      {props.hint !== undefined && <div class="meter-hint">{props.hint}</div>}
    </div>
  )
}

export function Fact({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>
        <bdi>{label}</bdi>
      </dt>
      <dd>{children}</dd>
    </div>
  )
}

/** A placeholder with the reason why there is nothing to show. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <svg width="72" height="36" viewBox="0 0 72 36" aria-hidden="true" focusable="false">
        <path
          d="M4 12q8-8 16 0t16 0 16 0 16 0M4 24q8-8 16 0t16 0 16 0 16 0"
          fill="none"
          stroke="currentColor"
          stroke-width="3"
          stroke-linecap="round"
        />
      </svg>
      <p class="empty-title">{title}</p>
      {children !== undefined && <div class="empty-words">{children}</div>}
    </div>
  )
}

/**
 * A table that may be wider and longer than its place. Scrolling areas need the keyboard focus. A group is no landmark,
 * so its name may repeat the title of its panel.
 */
export function Scroller({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: see above
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields
    <div class="scroll tall" role="group" tabIndex={0} aria-label={label}>
      {children}
    </div>
  )
}
