import type { Step } from '../chain.ts'

/** An access token of our own authorization server, which gives none out yet: nothing is ever one. */
export const accessToken: Step = () => undefined
