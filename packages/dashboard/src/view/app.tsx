/** The page: its frame, and what the address says. */
import { useEffect, useRef } from 'preact/hooks'
import { feedState, fleet, hello, isStale } from '../model/live'
import { route } from '../model/route'
import { ActDialog } from './act-dialog'
import { Banners } from './banners'
import { DemoStrip } from './demo-strip'
import { FleetPage } from './fleet-page'
import { GuardPage } from './guard-page'
import { Header } from './header'
import { QueuesPage } from './queues-page'
import { WhyPage } from './why-page'

export function App({ retry }: { retry: () => void }) {
  const main = useRef<HTMLElement>(null)
  const { page } = route.value
  const first = useRef(true)
  // Another page is announced by moving the focus to it, as loading one would.
  useEffect(() => {
    document.title = `${TITLES[page]} · Spillway`
    if (!first.current) main.current?.focus({ preventScroll: true })
    first.current = false
  }, [page])
  const known = hello.value !== undefined && fleet.value !== undefined
  return (
    <div class={isStale.value && known ? 'is-stale' : ''}>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        To the content
      </button>
      <Header />
      <main id="main" ref={main} tabIndex={-1}>
        {known ? (
          <>
            <Banners retry={retry} />
            <DemoStrip />
            <Page />
          </>
        ) : (
          <Waiting retry={retry} />
        )}
      </main>
      <ActDialog />
    </div>
  )
}

const TITLES = { fleet: 'Fleet', guards: 'Guards', why: 'Why', queues: 'Job queues' }

function Page() {
  switch (route.value.page) {
    case 'fleet':
      return <FleetPage />
    case 'guards':
      return <GuardPage />
    case 'why':
      return <WhyPage />
    case 'queues':
      return <QueuesPage />
  }
}

function Waiting({ retry }: { retry: () => void }) {
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
        <path
          d="M-16 24q8-10 16 0t16 0 16 0 16 0 16 0 16 0 16 0 16 0 16 0 16 0 16 0 16 0 16 0"
          fill="none"
          stroke="currentColor"
          stroke-width="4"
          stroke-linecap="round"
        />
        <path
          d="M-16 42q8-10 16 0t16 0 16 0 16 0 16 0 16 0 16 0 16 0 16 0 16 0 16 0 16 0 16 0"
          fill="none"
          stroke="currentColor"
          stroke-width="4"
          stroke-linecap="round"
        />
      </svg>
      <h1>Connecting to the fleet …</h1>
      <p>The first figures come within a second.</p>
    </div>
  )
}
