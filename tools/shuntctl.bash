# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Completion for shuntctl in bash: source it, or put it into bash's folder of completions as
# "shuntctl". Names of services and backends are the running daemon's.

_shuntctl_names() # SOCKET KIND: the first column of a list
{
	shuntctl ${1:+--socket "$1"} --timeout 2 "$2" list 2>/dev/null | sed -n '2,$s/  .*//p'
}

_shuntctl()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local socket='' i
	local -a words=() names=()

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-s | --socket)
			socket=${COMP_WORDS[++i]-}
			;;
		-t | --timeout | --address | --protocol | --port | --table | --affinity | --forward | \
			--tunnel-port | --vni | --carry | --echo | --fragment | --mss-clamp | \
			--quic | --health | --slow-start | --min-healthy | --when-all-down | --weight | --state | --mac | --zone | --quic-id | --revision | --service | --host | \
			--net | --count | --sample | --seconds | --backend | --client | --idle | --by)
			((++i))
			;;
		-*) ;;
		*) words+=("${COMP_WORDS[i]}") ;;
		esac
	done

	COMPREPLY=()
	case $before in
	-s | --socket)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	--protocol)
		names=(tcp udp any)
		[[ ${words[*]} != trace ]] || names=(tcp udp icmp icmpv6)
		;;
	--by) names=(service backend client worker) ;;
	--backend) mapfile -t names < <(_shuntctl_names "$socket" backend) ;;
	--service) mapfile -t names < <(_shuntctl_names "$socket" service) ;;
	--affinity) names=(5-tuple source-ip source-ip-port quic) ;;
	--forward) names=(l2 ipip gre gue vxlan) ;;
	--table) names=(maglev ring rendezvous stable) ;;
	--carry) names=(ipip ipv6 gre gue vxlan geneve) ;;
	--echo) names=(reply forward drop) ;;
	--fragment) names=(inner outer drop) ;;
	--mss-clamp) names=(auto) ;;
	--when-all-down) names=(keep drop) ;;
	--state) names=(up drain down) ;;
	-t | --timeout | --address | --port | --tunnel-port | --vni | --quic | --health | --slow-start | \
		--min-healthy | --weight | --mac | --zone | --quic-id | --revision | \
		--host | --net | --count | --sample | --seconds | --client | --idle)
		return
		;;
	*)
		if [[ $word == -* ]]; then
			names=(--socket --timeout --json --help --version)
			case "${words[*]:0:2}" in
			stats) names+=(--watch) ;;
			'flows list' | 'flows count' | 'flows clear')
				names+=(--service --backend --client --host --net --port --protocol
					--confirmed --unconfirmed --idle)
				case ${words[1]} in
				list) names+=(--count) ;;
				count) names+=(--by) ;;
				clear) names+=(--all) ;;
				esac
				;;
			trace)
				names+=(--count --service --dropped --host --net --port --protocol
					--sample --seconds)
				;;
			'service add')
				names+=(--address --protocol --port --forward --table --affinity
					--tunnel-port --vni --carry --echo --fragment
					--mss-clamp --quic --health --slow-start --min-healthy
					--when-all-down --save)
				;;
			'config push') names+=(--revision) ;;
			'backend add') names+=(--weight --state --mac --zone --quic-id --save) ;;
			'service remove' | 'backend remove' | 'backend drain' | 'backend up' | \
				'backend down' | 'backend weight')
				names+=(--save)
				;;
			esac
		elif [ ${#words[@]} -eq 0 ]; then
			names=(status stats top service backend explain trace flows plan reload config)
		elif [ ${#words[@]} -eq 1 ]; then
			case ${words[0]} in
			service) names=(list show add remove) ;;
			backend) names=(list add remove drain up down weight) ;;
			config) names=(show save) ;;
			flows) names=(list count find clear) ;;
			explain) names=(tcp udp) ;;
			plan | reload)
				mapfile -t COMPREPLY < <(compgen -f -- "$word")
				return
				;;
			esac
		else
			case "${words[*]:0:2}" in
			'service show' | 'service remove' | 'backend list')
				[ ${#words[@]} -gt 2 ] ||
					mapfile -t names < <(_shuntctl_names "$socket" service)
				;;
			'config push')
				[ ${#words[@]} -gt 2 ] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
				return
				;;
			'backend weight')
				[ ${#words[@]} -gt 2 ] ||
					mapfile -t names < <(_shuntctl_names "$socket" backend)
				;;
			'backend remove' | 'backend drain' | 'backend up' | 'backend down')
				mapfile -t names < <(_shuntctl_names "$socket" backend)
				;;
			esac
		fi
		;;
	esac
	for i in "${names[@]}"; do
		[[ $i != "$word"* ]] || COMPREPLY+=("$(printf '%q' "$i")")
	done
}

complete -F _shuntctl shuntctl
