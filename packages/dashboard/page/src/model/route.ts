/** The current page and its filters, kept in the address so that a link leads to them. */
import { signal } from '@preact/signals'
import { type DecisionFilter, NO_FILTER } from './decision-log'

export type Route =
  | { page: 'fleet' }
  | { page: 'guards'; guard: string | undefined; lane: string | undefined }
  | { page: 'why'; filter: DecisionFilter }
  | { page: 'queues' }

export const route = signal<Route>({ page: 'fleet' })

export function startRouting(): void {
  const follow = () => {
    route.value = readRoute(location.hash)
  }
  addEventListener('hashchange', follow)
  follow()
}

export function readRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  const [page, guard, lane] = path.split('/').map(decode)
  if (page === 'guards') return { page, guard: guard || undefined, lane: lane || undefined }
  if (page === 'queues') return { page }
  if (page !== 'why') return { page: 'fleet' }
  const given = new URLSearchParams(query)
  const filter = { ...NO_FILTER }
  for (const key of Object.keys(filter) as (keyof DecisionFilter)[]) {
    filter[key] = given.get(key) ?? ''
  }
  return { page, filter }
}

export function hrefOf(to: Route): string {
  if (to.page === 'guards') {
    const names = [to.guard, to.lane].filter((each) => each !== undefined)
    return ['#/guards', ...names.map(encodeURIComponent)].join('/')
  }
  if (to.page !== 'why') return `#/${to.page}`
  const given = Object.entries(to.filter).filter(([, value]) => value !== '')
  return given.length === 0 ? '#/why' : `#/why?${new URLSearchParams(given)}`
}

/** Replaces the history entry, for changes with every key press. */
export function replaceRoute(to: Route): void {
  history.replaceState(null, '', hrefOf(to))
  route.value = to
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
