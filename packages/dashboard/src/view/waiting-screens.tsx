/** What is shown before there is anything to show. */
import { useSignal } from '@preact/signals'
import { setToken } from '../model/acting'
import { feedState } from '../model/live'
import { TokenFields } from './token-fields'

export function WaitingScreen({ retry }: { retry: () => void }) {
  const state = feedState.value
  if (state.kind === 'lost') {
    return (
      <div class="waiting-screen" role="alert">
        <h1>The gateway cannot be reached</h1>
        <p>
          {state.problem}. The page goes on trying and will show the fleet as soon as it answers.
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
      <p>The first figures come within a second.</p>
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

/** From another machine, looking needs the token as well. */
export function LockedScreen({ connect }: { connect: () => void }) {
  const secret = useSignal('')
  const remember = useSignal(false)
  return (
    <form
      class="waiting-screen locked"
      onSubmit={(event) => {
        event.preventDefault()
        setToken(secret.value, { remember: remember.value })
        connect()
      }}
    >
      <h1>This fleet is for its operators</h1>
      <p>Looking at it from another machine needs the admin token of the gateway.</p>
      <TokenFields secret={secret} remember={remember} />
      <button type="submit" class="primary" disabled={secret.value === ''}>
        Look at the fleet
      </button>
    </form>
  )
}
