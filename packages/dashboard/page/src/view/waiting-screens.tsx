/** Screens before there is data: connecting, locked, no access. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { setToken } from '../model/acting'
import { feedState } from '../model/live'
import { Icon } from './icons'
import { TokenFields } from './token-fields'

export function WaitingScreen({ retry }: { retry: () => void }) {
  const state = feedState.value
  if (state.kind === 'lost') {
    return (
      <div class="waiting-screen" role="alert">
        <h1>The gateway cannot be reached</h1>
        <p>
          {state.problem}. The page keeps trying and shows the fleet as soon as the gateway answers.
        </p>
        <button type="button" class="primary" onClick={retry}>
          Try now
        </button>
      </div>
    )
  }
  return (
    <div class="waiting-screen" role="status">
      <svg
        class="waves"
        width="160"
        height="60"
        viewBox="0 0 160 60"
        aria-hidden="true"
        focusable="false"
      >
        <Wave at={24} />
        <Wave at={42} />
      </svg>
      <h1>Connecting to the fleet …</h1>
      <p>The first figures arrive within a second.</p>
    </div>
  )
}

function Wave({ at }: { at: number }) {
  return (
    <path
      d={`M-16 ${at}q8-10 16 0${'t16 0'.repeat(12)}`}
      fill="none"
      stroke="currentColor"
      stroke-width="4"
      stroke-linecap="round"
    />
  )
}

/** Reading needs the token. */
export function LockedScreen({
  wrong,
  withdrawn,
  connect,
}: {
  wrong: boolean
  withdrawn: boolean
  connect: () => void
}) {
  const secret = useSignal('')
  const remember = useSignal(false)
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => form.current?.querySelector('input')?.focus(), [])
  return (
    <form
      ref={form}
      class="waiting-screen locked"
      onSubmit={(event) => {
        event.preventDefault()
        setToken(secret.value, { remember: remember.value })
        connect()
      }}
    >
      <Icon name="lock" size={34} />
      <h1>Admin token required</h1>
      <p>Enter the token to see this fleet.</p>
      <TokenFields secret={secret} remember={remember} />
      {wrong && (
        <p class="locked-wrong tone-bad" role="alert">
          {withdrawn ? 'The token has changed. Enter the new one.' : 'The token is wrong.'}
        </p>
      )}
      <button type="submit" class="primary" disabled={secret.value === ''}>
        Show the fleet
      </button>
      <p class="note">
        It is <code>admin.token</code> of the gateway’s configuration, or <code>token</code> of{' '}
        <code>createDashboard</code>.
      </p>
    </form>
  )
}

/**
 * Access was denied with 403. A token helps if the host name or `mayRead` was the reason; the gateway's answer
 * mentions if no token is configured.
 */
export function BarredScreen({
  problem,
  withdrawn,
  connect,
}: {
  problem: string
  withdrawn: boolean
  connect: () => void
}) {
  const showsTokenForm = useSignal(false)
  if (showsTokenForm.value)
    return <LockedScreen wrong={false} withdrawn={false} connect={connect} />
  return (
    <div class="waiting-screen" role="alert">
      <Icon name="lock" size={34} />
      <h1>{withdrawn ? 'Access was withdrawn' : 'No access from here'}</h1>
      <p>
        Reason: <bdi>{problem}</bdi>.
      </p>
      <div class="row">
        <button type="button" class="primary" onClick={connect}>
          Try again
        </button>
        <button
          type="button"
          onClick={() => {
            showsTokenForm.value = true
          }}
        >
          Enter a token …
        </button>
      </div>
    </div>
  )
}
