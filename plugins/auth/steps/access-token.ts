import type { Step } from '../chain.ts'

/** An access token of the gateway's own authorization server. Not built yet: the step never matches. */
export const accessToken: Step = () => undefined
