import type { Exchange } from '../../protocol/exchange.ts'
import type { Provider } from '../../protocol/provider.ts'
import type { View } from '../settings/index.ts'
import type { Surface } from './surface.ts'

/** The surface that a presentation is made of, and its place in time. */
export interface Presented {
  /** What the same principal sees of the same servers, merged. */
  readonly merged: Surface
  /** The surface that was shown before in its place; its lists are reused where they are equal. */
  readonly before: Surface | undefined
  /** Equal for all views and clients that see the same. */
  readonly key: string
}

/** A way to show the servers of a view other than by the names of their items: made of the merged surface. */
export interface Presentation {
  /** Runs the items that it adds. It is no server: no view lists it, and its name must be none of a server. */
  readonly provider: Provider
  /** Called once per generation, where somebody asks for such a view. */
  readonly present: (presented: Presented) => Surface
}

/** Calls the tool that an exchange names, as `tools/call` does. */
export type CallTool = (exchange: Exchange<View>) => Promise<string>
