// Setup file of all tests. Files that run in one worker share the event channel. A listener that one file leaves there makes
// `listening()` true in the next ones, whose tests then depend on the order of files.

import { channel } from 'node:diagnostics_channel'
import { afterAll } from 'vitest'

const EVENT_CHANNEL = 'spillway'

afterAll(() => {
  if (channel(EVENT_CHANNEL).hasSubscribers)
    throw new Error(
      'this file left a listener of events; remove it with the function that onEvent returned',
    )
})
