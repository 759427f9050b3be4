import type { Step } from '../chain.ts'

/** An access token of the gateway's own authorization server. There is none yet, so this step identifies nobody. */
export const accessToken: Step = () => undefined
