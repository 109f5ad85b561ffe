/* SPDX-License-Identifier: BSD-3-Clause */
#include "decap_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUE_PORT 6080

static const struct option long_options[] = {
	{"interface", required_argument, NULL, 'i'},
	{"service", required_argument, NULL, 's'},
	{"outer", required_argument, NULL, 'o'},
	{"gue-port", required_argument, NULL, 'g'},
	{"mode", required_argument, NULL, 'm'},
	{"show", no_argument, NULL, 'S'},
	{"stats", no_argument, NULL, 'S'},
	{"json", no_argument, NULL, 'j'},
	{"detach", no_argument, NULL, 'd'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static int
parse_service(const char *text, struct decap_options *out)
{
	struct lb_prefix prefix;
	struct lb_addr network;
	char name[LB_PREFIX_TEXT_BYTES];

	if (out->n_services == DECAP_SERVICES_MAX) {
		(void)fprintf(stderr, "shunt-decap: at most %d services: use prefixes\n",
			DECAP_SERVICES_MAX);
		return -EINVAL;
	}
	if (lb_prefix_parse(text, &prefix) != 0) {
		(void)fprintf(stderr,
			"shunt-decap: --service wants ADDRESS or ADDRESS/LENGTH, not '%s'\n",
			text);
		return -EINVAL;
	}
	if (lb_prefix_has_host_bits(&prefix)) {
		network = lb_addr_mask(&prefix.addr, prefix.n_bits);
		prefix.addr = network;
		(void)fprintf(stderr,
			"shunt-decap: --service %s has bits set after its length: %s is the "
			"prefix\n",
			text, lb_prefix_format(&prefix, name));
		return -EINVAL;
	}
	out->services[out->n_services++] = prefix;
	return 0;
}

static int
parse_outer(const char *text, struct decap_options *out)
{
	if (out->n_outers == DECAP_OUTERS_MAX) {
		(void)fprintf(stderr, "shunt-decap: at most %d times --outer\n",
			DECAP_OUTERS_MAX);
		return -EINVAL;
	}
	if (lb_addr_parse(text, &out->outers[out->n_outers]) != 0 ||
		!lb_addr_is_unicast(&out->outers[out->n_outers])) {
		(void)fprintf(stderr,
			"shunt-decap: --outer wants a unicast address, not '%s'\n", text);
		return -EINVAL;
	}
	out->n_outers++;
	return 0;
}

static int
parse_port(const char *text, uint16_t *out)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (text[0] < '1' || text[0] > '9' || *end != '\0' || errno != 0 || value > 65535) {
		(void)fprintf(stderr,
			"shunt-decap: --gue-port wants a whole number, 1..65535, not '%s'\n",
			text);
		return -EINVAL;
	}
	*out = (uint16_t)value;
	return 0;
}

static int
parse_mode(const char *text, enum decap_mode *out)
{
	static const char *const names[] =
		{[DECAP_AUTO] = "auto", [DECAP_NATIVE] = "native", [DECAP_GENERIC] = "generic"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = (enum decap_mode)i;
			return 0;
		}
	}
	(void)fprintf(stderr, "shunt-decap: --mode is auto, native or generic, not '%s'\n",
		text);
	return -EINVAL;
}

static int
take_action(enum decap_action action, struct decap_options *out)
{
	if (out->action != DECAP_RUN && out->action != action) {
		(void)fprintf(stderr, "shunt-decap: --show or --detach, one at a time\n");
		return -EINVAL;
	}
	out->action = action;
	return 0;
}

static int
take_option(int option, const char *value, struct decap_options *out)
{
	int ret = 0;

	switch (option) {
	case 'i':
		out->interface = value;
		break;
	case 's':
		ret = parse_service(value, out);
		break;
	case 'o':
		ret = parse_outer(value, out);
		break;
	case 'g':
		ret = parse_port(value, &out->gue_port);
		break;
	case 'm':
		ret = parse_mode(value, &out->mode);
		break;
	case 'S':
		ret = take_action(DECAP_SHOW, out);
		break;
	case 'd':
		ret = take_action(DECAP_DETACH, out);
		break;
	case 'j':
		out->is_json = true;
		break;
	case 'v':
		out->is_verbose = true;
		break;
	default: /* getopt_long() has said what is wrong */
		ret = -EINVAL;
	}
	return ret;
}

static int
check_usage(int argc, char *argv[], const struct decap_options *options)
{
	const char *wrong = NULL;

	if (optind < argc) {
		(void)fprintf(stderr, "shunt-decap: '%s' is no option\n", argv[optind]);
		return -EINVAL;
	}
	if (options->interface == NULL)
		wrong = "which interface? Name it with --interface IF";
	else if (options->action == DECAP_RUN && options->n_services == 0)
		wrong = "for which services? Name each with --service ADDRESS[/LENGTH]";
	if (wrong != NULL) {
		(void)fprintf(stderr, "shunt-decap: %s\n", wrong);
		return -EINVAL;
	}
	return 0;
}

int
decap_options_parse(int argc, char *argv[], struct decap_options *out)
{
	int option;

	out->gue_port = GUE_PORT;
	while ((option = getopt_long(argc, argv, "i:s:o:g:m:jdvhV", long_options, NULL)) !=
		-1) {
		if (option == 'h' || option == 'V') {
			out->action = option == 'h' ? DECAP_HELP : DECAP_VERSION;
			return 0;
		}
		if (take_option(option, optarg, out) != 0)
			return -EINVAL;
	}
	return check_usage(argc, argv, out);
}
