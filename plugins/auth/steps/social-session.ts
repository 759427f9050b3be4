import type { Step } from '../chain.ts'

/** The session cookie of a social login. Not built yet: the step never matches. */
export const socialSession: Step = () => undefined
