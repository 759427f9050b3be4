import fp from 'fastify-plugin'
import type { Storage } from '../../db/store.ts'
import accessTokens from './access-tokens.ts'
import auth from './auth/index.ts'
import refusals from './auth/refusals.ts'
import throttle from './auth/throttle.ts'
import keys from './keys/index.ts'
import oauth from './oauth/index.ts'
import social from './social/index.ts'
import teams from './teams/teams.ts'
import users from './users/users.ts'

export interface IdentityOptions {
  storage: Pick<Storage, 'clients' | 'consents' | 'grants' | 'loginStates' | 'socialLogins' | 'tokens'>
  /** The credential with which the command line calls the management API on this machine, if any. */
  localToken?: string
}

/** Registers the plugins of this folder, each after the plugins that it uses. */
export default fp<IdentityOptions>(async (app, { storage, localToken }) => {
  await app.register(refusals)
  await app.register(throttle)
  await app.register(users)
  await app.register(teams)
  await app.register(keys)
  await app.register(accessTokens, storage)
  await app.register(social, storage)
  await app.register(auth, { localToken })
  await app.register(oauth, storage)
}, { name: 'identity-parts' })
