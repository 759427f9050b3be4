// The worker pool runs this module for `translateLarge`.
import type { Item } from '../../../protocol/lists.ts'
import { toOperation, type Operation } from './operation.ts'

export const run = ({ server, item }: { server: string, item: Item }): Operation | undefined =>
  toOperation(server, item)
