import type { Step } from '../chain.ts'

/** The session cookie of a social login. There is none yet, so this step identifies nobody. */
export const socialSession: Step = () => undefined
