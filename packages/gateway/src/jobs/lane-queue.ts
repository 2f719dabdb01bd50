/** A job queue and the vendor and lane of its jobs. */
import type { WorkableJobQueue } from 'spillway'
import type { QueueConfig } from '../config/config.js'
import type { Vendor } from '../vendor/vendor.js'
import type { StoredAnswer } from './stored-answer.js'
import type { StoredRequest } from './stored-request.js'

export interface LaneQueue {
  readonly config: QueueConfig
  readonly vendor: Vendor
  readonly lane: string | undefined
  readonly jobs: WorkableJobQueue<StoredRequest, StoredAnswer>
}
