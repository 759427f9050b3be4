import { normalizeIP } from '@fastify/rate-limit'

/** The owner of what somebody holds who has presented no credentials: the address, of IPv6 its first 64 bits. */
export const ownerAt = (address: string): string => `address ${normalizeIP(address, 64)}`
