import { describe, expect, it } from 'vitest'
import { NO_FILTER } from './decision-log'
import { hrefOf, type Route, readRoute } from './route'

describe('dashboard routes', () => {
  it.each<Route>([
    { page: 'fleet' },
    { page: 'queues' },
    { page: 'guards', guard: undefined, lane: undefined },
    { page: 'guards', guard: 'a/b <script>?#%', lane: 'קו/1' },
    { page: 'why', filter: NO_FILTER },
    {
      page: 'why',
      filter: { request: 'r-1', user: 'ann & bob', guard: 'a=b', stage: 'queue', code: 'SHED' },
    },
  ])('readRoute restores the route %o', (route) => {
    expect(readRoute(hrefOf(route))).toEqual(route)
  })

  it('an unknown address leads to the fleet page', () => {
    expect(readRoute('#/nowhere')).toEqual({ page: 'fleet' })
    expect(readRoute('')).toEqual({ page: 'fleet' })
    expect(readRoute('#/guards/%E0%A4%A')).toMatchObject({ guard: '%E0%A4%A' })
  })
})
