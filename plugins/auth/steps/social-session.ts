import type { Step } from '../chain.ts'

/** The session cookie of a social login, which there is none of yet: nothing is ever one. */
export const socialSession: Step = () => undefined
