/** The frame of the page, and the view that the address selects. */
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
import { BarredScreen, LockedScreen, WaitingScreen } from './waiting-screens'
import { WhyPage } from './why-page'

export function App({ retry }: { retry: () => void }) {
  const main = useRef<HTMLElement>(null)
  const { page } = route.value
  const first = useRef(true)
  // A new page starts at its top and gets the focus, as a loaded page would.
  useEffect(() => {
    document.title = `${TITLES[page]} · Spillway`
    if (!first.current) {
      main.current?.focus({ preventScroll: true })
      scrollTo(0, 0)
    }
    first.current = false
  }, [page])
  const state = feedState.value
  const known = hello.value !== undefined && fleet.value !== undefined
  return (
    <div class={isStale.value && known ? 'is-stale' : ''}>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <Header />
      <main id="main" ref={main} tabIndex={-1}>
        {state.kind === 'locked' ? (
          <LockedScreen {...state} connect={retry} />
        ) : state.kind === 'barred' ? (
          <BarredScreen {...state} connect={retry} />
        ) : known ? (
          <>
            <Banners retry={retry} />
            <div class="content">
              <DemoStrip />
              <Page />
            </div>
          </>
        ) : (
          <WaitingScreen retry={retry} />
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
