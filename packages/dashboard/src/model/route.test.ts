import { describe, expect, it } from 'vitest'
import { NO_FILTER } from './decision-log'
import { hrefOf, type Route, readRoute } from './route'

describe('an address', () => {
  it.each<Route>([
    { page: 'fleet' },
    { page: 'queues' },
    { page: 'guards', guard: undefined, lane: undefined },
    { page: 'guards', guard: 'a/b <script>?#%', lane: 'קו/1' },
    { page: 'why', filter: NO_FILTER },
    { page: 'why', filter: { user: 'ann & bob', guard: 'a=b', stage: 'room', code: 'SHED' } },
  ])('leads back to where it was made: %o', (route) => {
    expect(readRoute(hrefOf(route))).toEqual(route)
  })

  it('that nobody made leads to the fleet', () => {
    expect(readRoute('#/nowhere')).toEqual({ page: 'fleet' })
    expect(readRoute('')).toEqual({ page: 'fleet' })
    expect(readRoute('#/guards/%E0%A4%A')).toMatchObject({ guard: '%E0%A4%A' })
  })
})
