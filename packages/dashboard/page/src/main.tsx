/** Starts the page. */
import 'uplot/dist/uPlot.min.css'
import './style/base.css'
import './style/frame.css'
import './style/fleet.css'
import './style/pipeline.css'
import './style/instruments.css'
import './style/why.css'
import './style/queues.css'
import './style/widths.css'
import { render } from 'preact'
import { baseUrl, forgetToken, token } from './model/acting'
import { startClock } from './model/clock'
import { Feed } from './model/feed'
import { feedState, forgetAll, take } from './model/live'
import { startPreferences } from './model/preferences'
import { startRouting } from './model/route'
import { App } from './view/app'

const feed = new Feed({
  url: `${baseUrl()}events`,
  token: () => token.value,
  onMessage: take,
  onState(state) {
    if (state.kind === 'locked') forgetToken()
    if (state.kind === 'locked' || state.kind === 'barred') forgetAll()
    feedState.value = state
  },
})

startPreferences()
startRouting()
startClock()
feed.connect()
addEventListener('online', () => feed.connect())
render(<App retry={() => feed.connect()} />, document.getElementById('app') as HTMLElement)
