/**
 * An item that knows its neighbours, so that it can be removed from the middle in constant time.
 */
export interface Linked<T> {
  before: T | undefined
  after: T | undefined
}

/** A first-in, first-out list whose items can be removed from the middle in constant time. */
export class LinkedList<T extends Linked<T>> {
  first: T | undefined
  last: T | undefined
  length = 0

  push(item: T): void {
    item.before = this.last
    item.after = undefined
    if (this.last === undefined) this.first = item
    else this.last.after = item
    this.last = item
    this.length++
  }

  /** `item` has to be in this list. */
  remove(item: T): void {
    if (item.before === undefined) this.first = item.after
    else item.before.after = item.after
    if (item.after === undefined) this.last = item.before
    else item.after.before = item.before
    item.before = undefined
    item.after = undefined
    this.length--
  }
}
