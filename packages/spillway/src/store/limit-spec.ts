/** A limit as stores know it: numbers only, in microseconds. */
export interface LimitSpec {
  /** Its name among the limits of a guard; counts are kept under it when the rest changes. */
  id: string
  algorithm: 'sliding-window' | 'token-bucket' | 'leaky-bucket' | 'fixed-window'
  limit: number
  windowUs: number
  /** Sliding window: how finely it is cut. */
  slices: number
  /** Token bucket: what may be taken at once; 0 for the limit itself. */
  burst: number
  /** One count for each lane, or one for all lanes of the guard. */
  span: 'lane' | 'vendor'
}
