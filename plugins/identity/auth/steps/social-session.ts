import type { SocialLogin } from '../../social/social.ts'
import type { AuthStep } from '../chain.ts'

/**
 * The session cookie of a social login, on the management API only. It acts as its user, who is read from the settings: demotion, deletion
 * and another password take effect at once.
 */
export const socialSession = (social: SocialLogin): AuthStep => ({ headers }, routes, snapshot) =>
  routes === 'api' ? social.identify(headers, snapshot) : undefined
