/** The dialog of all operator actions: their effect, the token if it is needed, and the result. */
import { signal, useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import { type ActResult, sendAct, setToken, token } from '../model/acting'
import { guardByName, hello } from '../model/live'
import type { Act } from '../wire'
import { wordsFor } from './act-text'
import { EVERY_LANE } from './breaker-text'
import { TokenFields } from './token-fields'

const draft = signal<{ act: Act; result: ActResult | undefined } | undefined>(undefined)

/** Opens the dialog. `result`: of an attempt without the dialog. */
export function openActDialog(act: Act, result?: ActResult): void {
  draft.value = { act, result }
}

/** Whether the gateway offers this action. */
export function may(act: Act['act']): boolean {
  const known = hello.value
  return known?.may.includes(act) ?? false
}

export function ActDialog() {
  const dialog = useRef<HTMLDialogElement>(null)
  const current = draft.value
  useEffect(() => {
    if (current !== undefined && dialog.current?.open === false) dialog.current.showModal()
    if (current === undefined) dialog.current?.close()
  }, [current])
  const close = () => {
    draft.value = undefined
  }
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="act-title">
      {current !== undefined && <ActForm act={current.act} result={current.result} close={close} />}
    </dialog>
  )
}

function ActForm({
  act,
  result,
  close,
}: {
  act: Act
  result: ActResult | undefined
  close: () => void
}) {
  const busy = useSignal(false)
  const secret = useSignal('')
  const remember = useSignal(false)
  const words = wordsFor(act)
  const acts = hello.value?.acts
  const done = result?.kind === 'done'
  const wantsToken = !done && acts !== 'off' && token.value === undefined
  // The token is requested at once if actions need it, otherwise after a 401.
  const showToken = wantsToken && (acts === 'token' || result?.kind === 'needs-token')
  const change = (changed: Act) => {
    draft.value = { act: changed, result: undefined }
  }
  const submit = async (event: Event) => {
    event.preventDefault()
    if (busy.value) return
    if (showToken) setToken(secret.value, { remember: remember.value })
    busy.value = true
    // Hides the result of an earlier attempt.
    draft.value = { act, result: undefined }
    const came = await sendAct(act)
    busy.value = false
    if (draft.peek()?.act === act) draft.value = { act, result: came }
  }
  return (
    <form onSubmit={submit}>
      <div class="dialog-body">
        <h2 id="act-title">
          <bdi class="name-full">{words.title}</bdi>
        </h2>
        {!done && <Fields act={act} change={change} />}
        {!done && acts !== 'off' && (
          <p class="consequence">
            <bdi class="name-full">{words.consequence}</bdi>
          </p>
        )}
        {acts === 'off' && (
          <p class="consequence">
            Actions are off: this gateway has no admin token, and you are not on its machine.
            Configure a token and reload the page.
          </p>
        )}
        {showToken && <TokenFields secret={secret} remember={remember} />}
        <div role="status" aria-live="polite">
          {result !== undefined && (
            <p class={`answer tone-${done ? 'good' : 'refused'}`} data-testid="act-answer">
              {done ? 'Done: ' : 'Not done: '}
              <bdi>{result.words}</bdi>
            </p>
          )}
        </div>
      </div>
      <div class="dialog-foot">
        <button type="button" onClick={close}>
          {done ? 'Close' : 'Cancel'}
        </button>
        {!done && acts !== 'off' && (
          <button
            type="submit"
            class={words.harsh ? 'danger' : 'primary'}
            disabled={busy.value || (showToken && secret.value === '')}
          >
            {busy.value ? 'Sending …' : words.button}
          </button>
        )}
      </div>
    </form>
  )
}

const MINUTE_MS = 60_000

function Fields({ act, change }: { act: Act; change: (act: Act) => void }) {
  const lanes =
    'lane' in act ||
    act.act === 'isolate' ||
    act.act === 'release' ||
    act.act === 'reset' ||
    act.act === 'pause'
  const limit = act.act === 'limit'
  const lasts = 'forMs' in act
  if (!lanes && !lasts) return null
  return (
    <div class="field-row">
      {lanes && <LaneField act={act as Act & { guard: string }} change={change} />}
      {limit && (
        <NumberField
          label="New limit"
          value={act.limit}
          least={0}
          onChange={(value) => change({ ...act, limit: value })}
        />
      )}
      {lasts && (
        <NumberField
          label="Duration in minutes"
          value={act.forMs / MINUTE_MS}
          least={1}
          onChange={(value) => change({ ...act, forMs: value * MINUTE_MS })}
        />
      )}
    </div>
  )
}

function LaneField({ act, change }: { act: Act & { guard: string }; change: (act: Act) => void }) {
  const id = useId()
  const lanes = guardByName.value.get(act.guard)?.lanes ?? []
  const chosen = 'lane' in act ? (act.lane ?? '') : ''
  return (
    <div class="field">
      <label for={id}>Lane</label>
      <select
        id={id}
        value={chosen}
        onChange={(event) => {
          const { lane: _, ...rest } = act as Act & { lane?: string }
          const lane = event.currentTarget.value
          change((lane === '' ? rest : { ...rest, lane }) as Act)
        }}
      >
        <option value="">all lanes</option>
        {lanes
          .filter(({ lane }) => lane !== EVERY_LANE)
          .map(({ lane }) => (
            <option key={lane} value={lane}>
              {lane}
            </option>
          ))}
      </select>
    </div>
  )
}

function NumberField(props: {
  label: string
  value: number
  least: number
  onChange: (value: number) => void
}) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <input
        id={id}
        type="number"
        required
        min={props.least}
        step="1"
        value={Number.isNaN(props.value) ? '' : props.value}
        onInput={(event) => props.onChange(event.currentTarget.valueAsNumber)}
      />
    </div>
  )
}
