/** The built-in scenarios, from simple to advanced. */
import type { Scenario } from '../scenario/scenario.js'
import { burst } from './burst.js'
import { failing } from './failing.js'
import { learnedLimits } from './learned-limits.js'
import { oneKey } from './one-key.js'
import { outage } from './outage.js'
import { overload } from './overload.js'
import { pause } from './pause.js'
import { recovery } from './recovery.js'
import { retryStorm } from './retry-storm.js'
import { scale } from './scale.js'
import { sickPod } from './sick-pod.js'
import { spike } from './spike.js'
import { storeLoss } from './store-loss.js'
import { throttled } from './throttled.js'

/** The built-in scenarios. */
export const SCENARIOS: readonly Scenario[] = [
  overload,
  spike,
  burst,
  pause,
  outage,
  failing,
  retryStorm,
  recovery,
  throttled,
  learnedLimits,
  oneKey,
  scale,
  sickPod,
  storeLoss,
]
