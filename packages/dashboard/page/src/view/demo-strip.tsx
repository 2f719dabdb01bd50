/** Two switches of a demo, if the gateway contains a mock vendor. */
import { useSignal } from '@preact/signals'
import { sendAct } from '../model/acting'
import { demo, hello } from '../model/live'
import type { DemoState } from '../wire'
import { openActDialog } from './act-dialog'

export function DemoStrip() {
  const state = demo.value
  if (hello.value?.demo === undefined || state === undefined) return null
  return (
    <section class="demo" aria-label="Demonstration">
      <p>
        A mock vendor runs inside this gateway. Start a load, then make the vendor fail: the breaker
        opens on all pods. Repair it, and the fleet recovers.
      </p>
      <Switch what="load" on={state.load} label="Load" tone="flow" />
      <Switch what="broken" on={state.broken} label="Break the vendor" tone="refused" />
    </section>
  )
}

function Switch(props: { what: keyof DemoState; on: boolean; label: string; tone: string }) {
  const { what, on } = props
  const busy = useSignal(false)
  const flip = async () => {
    busy.value = true
    const act = { act: 'demo', [what]: !on } as const
    const result = await sendAct(act)
    busy.value = false
    // The action failed or needs a token; the dialog shows the reason.
    if (result.kind !== 'done') openActDialog(act, result)
  }
  return (
    <button
      type="button"
      role="switch"
      class={`switch tone-${props.tone}`}
      aria-checked={on}
      disabled={busy.value}
      onClick={flip}
    >
      <span class="switch-track" />
      {props.label}
      <span class="switch-word" aria-hidden="true">
        {on ? 'on' : 'off'}
      </span>
    </button>
  )
}
